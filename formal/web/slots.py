"""Proof of ``Slots`` in ``cores/web/slots.py``: two lanes and a slot for scans.

The finder ends each job once; a lane takes each head that goes to its end once, sooner or later
than the finder ends it; an answer follows for each of these, in any order. Proved, of an arbitrary
session: what is reported is the end of a job of it that has begun and was not reported, and there
is always one place from which the report will come: its slot, the answer that is being made, or the
report that waits. So each job is reported once. A scan's report says how many bytes the job had,
and none is of a head that goes to its end. No slot is given out while the finder or a lane has it.

Not proved: other numbers of lanes; a reset while running.
"""

from types import SimpleNamespace

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Signal, Value

from ..kit.inside import Inside
from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

LANES, MOST = 2, 62
#: What slots need to know of their finder.
FINDER = SimpleNamespace(slots=LANES + 1, segment_log2=8)


class SlotsProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        Inside(m, dut)
        free(m, dut.begin, dut.session, dut.parse, dut.whole, dut.new_job, *dut.parsed)
        free(m, dut.job.ready, dut.result.valid, dut.result.payload)
        free(m, dut.answered, dut.answered_session, dut.reported)
        stream_rules(m, dut.job, Assert, "job")
        stream_rules(m, dut.result, Assume, "result")
        self._session(m)
        self._slots(m)
        m.d.comb += [
            Cover(dut.report & dut.is_scan & ~dut.scan.parse),
            Cover(dut.report & dut.is_scan & dut.scan.parse),
            Cover(dut.report & ~dut.is_scan),
        ]
        return m

    def _session(self, m):
        """An arbitrary session: one job at a time, and its answer."""
        dut = self.dut
        self.chosen = chosen = Signal.like(dut.session, name="chosen")
        self.owes = Signal(name="owes")  # its job was not reported
        self.length = Signal.like(dut.new_job.length, name="job_length")
        self.sure = Signal(name="goes_to_its_end")
        self.making = Signal(name="making")  # its answer is being made, or waits
        self.begins = dut.begin & dut.free
        mine = dut.session == chosen
        self.reports = dut.report & (dut.report_session == chosen)
        held, past = Signal(name="report_waits"), Signal(2 + len(dut.report_session))
        said = Cat(dut.report, dut.is_scan, dut.report_session)
        offered, past_session = Signal(name="answer_waits"), Signal.like(dut.session)
        taken = dut.reported & ~dut.is_scan
        m.d.sync += [held.eq(dut.report & ~dut.reported), past.eq(said)]
        m.d.sync += [offered.eq(dut.answered & ~taken), past_session.eq(dut.answered_session)]
        m.d.comb += [
            chosen.eq(AnyConst(len(chosen))),
            Assume(~dut.begin | ~mine | ~self.owes),
            Assume(~dut.begin | (dut.new_job.length <= MOST)),
            Assume(~dut.reported | dut.report),
            Assume(~dut.answered | (dut.answered_session != chosen) | self.making),
            Assume(~offered | dut.answered & (dut.answered_session == past_session)),
            Assert(~held | (said == past)),
            Assert(~self.reports | self.owes),
            Assert(~self.reports | ~dut.is_scan | (dut.scanned == self.length) & ~self.sure),
            Assert(~self.reports | dut.is_scan | self.making),
            Assert(~(dut.report & ~dut.is_scan) | dut.answered),
            Assert(~(dut.report & ~dut.is_scan) | (dut.report_session == dut.answered_session)),
        ]
        with m.If(self.begins & mine):
            m.d.sync += [self.owes.eq(1), self.length.eq(dut.new_job.length)]
        with m.If(dut.reported & self.reports):
            m.d.sync += self.owes.eq(0)
            with m.If(~dut.is_scan):
                m.d.sync += self.making.eq(0)

    def _slots(self, m):
        """Who has a slot: the job offered or the finder, and the lane."""
        dut, result = self.dut, self.dut.result
        found, job = result.payload, dut.job.payload
        m.d.comb += Assume(~result.valid | (found.slot <= LANES))
        places = []
        for k, slot in enumerate(dut.slots):
            reads, lane = Signal(name=f"finder_has{k}"), Signal(name=f"lane_has{k}")
            offers, sure = dut.job.valid & (job.slot == k), Signal(name=f"sure{k}")
            parse, whole = Signal(name=f"parses{k}"), Signal(name=f"is_whole{k}")
            session = Signal.like(dut.session, name=f"session{k}")
            number = (found.slot == k) & result.valid
            parsed = dut.parsed[k] if k < LANES else 0
            begins = self.begins & (self._given(m, k))
            mine = session == self.chosen
            m.d.sync += reads.eq((reads | (dut.job.ready & offers)) & ~(moves(result) & number))
            with m.If(begins):
                goes = AnySeq(1) & dut.parse
                m.d.sync += [parse.eq(dut.parse), whole.eq(dut.whole), lane.eq(dut.parse)]
                m.d.sync += [session.eq(dut.session), sure.eq(goes | (dut.parse & dut.whole))]
                with m.If(dut.session == self.chosen):
                    m.d.sync += self.sure.eq(goes | (dut.parse & dut.whole))
            ended = moves(result) & number
            m.d.comb += [
                Assume(~number | reads),
                Assume(~number | (found.parse == parse)),
                Assume(~number | ((parse & (found.found | whole)) == sure)),
                Assume(~Value.cast(parsed) | lane & sure),
            ]
            with m.If(parsed | (ended & ~sure)):
                m.d.sync += lane.eq(0)
            with m.If(Value.cast(parsed) & mine):
                m.d.sync += self.making.eq(1)
            m.d.comb += [
                Assert(~begins | ~reads & ~lane & ~offers),
                Assert(slot.read == (reads | offers)),
                Assert(slot.parses == lane),
                Assert(~(slot.read | lane) | (slot.session == session)),
                Assert(~slot.read | (slot.whole == whole)),
                Assert(~(reads & offers)),
                Assert(~lane | parse),
                Assert(~slot.read | ~parse | sure | lane),
                Assert(~(lane & ~sure) | slot.read),
                Assert(~sure | parse),
                Assert(~(slot.read & mine & ~sure) | (slot.length == self.length)),
                Assert(~((lane | (slot.read & ~sure)) & mine) | (self.sure == sure)),
            ]
            if k < LANES:
                m.d.comb += Assert(~lane | (dut.sessions[k] == session))
            else:
                m.d.comb += Assert(~slot.read | ~parse)
                m.d.comb += Assert(~lane)
            places.append(mine & ((lane & sure) | (slot.read & ~sure)))
        scan = self.reports & dut.is_scan
        m.d.comb += Assert(~dut.job.valid | (job.slot <= LANES))
        m.d.comb += Assert(sum(places) + scan + self.making == self.owes)

    def _given(self, m, k):
        """Whether a job that begins now gets this slot."""
        dut = self.dut
        given = Signal(name=f"given{k}")
        if k == LANES:
            m.d.comb += given.eq(~dut.parse)
        else:
            before = [dut.slots[j].read | dut.slots[j].parses for j in range(k)]
            here = dut.slots[k].read | dut.slots[k].parses
            m.d.comb += given.eq(dut.parse & ~here & (Cat(before).all() if before else 1))
        return given


PROOFS = (
    Proof(
        name="web_slots",
        core="cores.web.slots.Slots(2 lanes, jobs of at most 62 bytes)",
        says="each job that begins is reported once, by a scan's end or by its answer; no slot is "
        "given out twice",
        module="trebuchet.cores.web.slots",
        build=lambda cores: SlotsProof(cores.Slots(FINDER, LANES, MOST)),
        depth=1,
        cover_depth=10,
        mutants=(
            Mutant("reports_all", "found.parse & (found.found | kept.whole)", "0"),
            Mutant("drops_a_result", "goes_on | ~self.report", "1"),
            Mutant(
                "gives_out_early",
                "~self.slots[k].read & ~self.slots[k].parses",
                "~self.slots[k].parses",
            ),
            Mutant("keeps_the_lane", "self.slots[k].parses.eq(0)", "self.slots[k].parses.eq(1)"),
        ),
        assumes="the finder ends each job, a lane takes each whole head, an answer follows, once",
        not_proved="other numbers of lanes; a reset while running",
    ),
)
