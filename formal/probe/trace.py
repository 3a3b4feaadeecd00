"""Proof of ``TraceCore`` in ``cores/probe/trace.py``.

The harness has its own delay line of samples, its own clock, and decides from the contract when
records are stored, when the trigger fires and when a capture ends. The solver picks any sample of a
capture. Proved of it, over public ports: as long as fewer than ``depth`` records were stored after
the one that covers it, that record is shown at the place that follows, with the sample's value and
the stamp of the cycle in which that value's run began; from the trigger's sample to the last one no
sample is missing, and as each has one record, none is doubled. Of the times: a record begins 1 to
``2**stamp_width`` cycles before the next one, the last one fewer than that before ``end_time``; the
sample's cycle lies between its record's and the next. So by induction over the records, from the
last to the first, the cycles that a reader computes from stamps are exact. The trigger is the
first sample that meets the condition, ``trigger_time`` its cycle; a capture has ``depth - before``
records from there on, unless it is stopped or armed again at any time.

Not proved: behaviour under a reset while running; other widths and depths than those named.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Cat, Cover, Elaboratable, Mux, Signal

from ...cores.csr import fields
from ...cores.probe.trace import WINDOW
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]


class TraceCoreProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = self.dut
        self._inputs(m)
        self._capture(m)
        self._picked(m)
        self._reading(m)
        self._covers(m)
        self._invariants(m)
        return m

    def _inputs(self, m):
        """Samples by age, the condition, and the clock; ``x2`` is the sample of cycle ``time``."""
        dut, csr = self.dut, self.dut.csr
        free(m, dut.data, csr.control, csr.before)
        free(m, *(getattr(csr, f"window_{k}_read") for k in range(WINDOW)))
        width = dut.width
        value, mask, edge = csr.value_0, csr.mask_0, csr.edge_0
        free(m, value, mask, edge)
        self.x1, self.x2, self.x3 = (Signal(width, name=f"x{k}") for k in (1, 2, 3))
        self.time = Signal(len(dut.now))
        m.d.sync += [self.x1.eq(dut.data), self.x2.eq(self.x1), self.x3.eq(self.x2)]
        m.d.sync += self.time.eq(self.time + 1)
        # What the registers were one cycle ago; there was none before the first.
        value1, mask1, edge1 = (Signal(width, name=f"{n}1") for n in ("value", "mask", "edge"))
        begun = Signal()
        m.d.sync += [value1.eq(value), mask1.eq(mask), edge1.eq(edge), begun.eq(1)]
        met = ((self.x2 ^ value1) & mask1) == 0
        self.meets = begun & met & ((edge1 == 0) | (((self.x2 ^ self.x3) & edge1) != 0))

    def _capture(self, m):
        """When there is a capture, what it stores, and when it ends."""
        dut, csr = self.dut, self.dut.csr
        control = fields(csr, "control")
        self.open, self.first, self.fired = Signal(), Signal(), Signal()
        self.stored, self.after = Signal(len(dut.count)), Signal(len(dut.count))
        self.kept = Signal(len(csr.before))
        self.trigger, self.end = Signal(len(dut.now)), Signal(len(dut.now))
        fires, stores = Signal(), Signal()
        ends = Signal()
        stamp = self.time[: dut.stamp_width]
        m.d.comb += [
            fires.eq(self.open & ~self.fired & self.meets),
            stores.eq(
                self.open & (self.first | fires | (stamp == 0) | (self.x2 != self.x3))
            ),
            ends.eq(stores & (self.fired | fires) & (self.after + 1 + self.kept == dut.depth)),
        ]  # fmt: skip
        self.fires, self.stores = fires, stores
        with m.If(self.open):
            m.d.sync += [self.first.eq(0), self.end.eq(self.time)]
            with m.If(fires):
                m.d.sync += [self.fired.eq(1), self.trigger.eq(self.time)]
            with m.If(stores & (self.stored != dut.depth)):
                m.d.sync += self.stored.eq(self.stored + 1)
            with m.If(stores & (self.fired | fires)):
                m.d.sync += self.after.eq(self.after + 1)
            with m.If(ends | control.stop):
                m.d.sync += self.open.eq(0)
        with m.If(control.arm):
            m.d.sync += [self.open.eq(1), self.first.eq(1), self.fired.eq(0)]
            m.d.sync += [self.stored.eq(0), self.after.eq(0), self.kept.eq(csr.before)]
        done = ~self.open & (self.stored != 0)
        self.done = done
        m.d.comb += Assert(csr.state == Cat(self.open, self.fired, done))
        with m.If(done):
            m.d.comb += [Assert(csr.records == self.stored), Assert(csr.end_time == self.end)]
            with m.If(self.fired):
                m.d.comb += Assert(csr.trigger_time == self.trigger)

    def _picked(self, m):
        """Any sample of the capture, the record that covers it, and that record's times."""
        dut, bits = self.dut, len(self.dut.now)
        self.seen, self.sample, self.at = Signal(), Signal(dut.width), Signal(bits)
        self.start, self.next, self.has_next = Signal(bits), Signal(bits), Signal()
        self.newest = Signal(bits)  # when the last record began
        self.age = Signal(len(dut.count))  # records stored after the one that covers it
        self.late = Signal()  # it is the trigger's sample, or came later
        pick = Signal()
        m.d.comb += pick.eq(AnySeq(1))
        with m.If(self.stores):
            m.d.sync += self.newest.eq(self.time)
        with m.If(self.open & ~self.seen & pick):
            m.d.sync += [self.seen.eq(1), self.sample.eq(self.x2), self.at.eq(self.time)]
            m.d.sync += self.start.eq(Mux(self.stores, self.time, self.newest))
            m.d.sync += [self.has_next.eq(0), self.age.eq(0)]
            m.d.sync += self.late.eq(self.fired | self.fires)
        with m.Elif(self.seen & self.stores):
            m.d.sync += self.age.eq(Mux(self.age == dut.depth, self.age, self.age + 1))
            with m.If(~self.has_next):
                m.d.sync += [self.has_next.eq(1), self.next.eq(self.time)]
        with m.If(fields(dut.csr, "control").arm):
            m.d.sync += self.seen.eq(0)
        self.here = self.seen & (self.age != dut.depth)
        longest = 1 << dut.stamp_width
        ran, lasted, passed = Signal(bits), Signal(bits), Signal(bits)
        m.d.comb += [
            ran.eq(self.at - self.start),
            lasted.eq(self.next - self.start),
            passed.eq(self.end - self.start),
        ]
        with m.If(self.seen & self.has_next):
            m.d.comb += [Assert(lasted != 0), Assert(lasted <= longest), Assert(ran < lasted)]
        with m.If(self.seen & ~self.has_next & self.done):
            m.d.comb += [Assert(passed < longest), Assert(ran <= passed)]
        with m.If(self.seen & self.late):
            m.d.comb += Assert(self.age + self.kept < dut.depth)

    def _reading(self, m):
        """The record that covers the sample is read where it must be."""
        dut, csr = self.dut, self.dut.csr
        control, bits = fields(csr, "control"), len(csr.position)
        self.place, self.second = Signal(bits), Signal()  # record and word that are shown
        reads = Cat(getattr(csr, f"window_{k}_read") for k in range(WINDOW)).any()
        moves = Signal()  # on to another record
        m.d.comb += moves.eq(control.rewind | (reads & self.second))
        with m.If(control.rewind):
            m.d.sync += [self.place.eq(0), self.second.eq(0)]
        with m.Elif(reads):
            m.d.sync += [self.second.eq(~self.second), self.place.eq(self.place + self.second)]
        m.d.comb += Assert(csr.position == self.place)
        looks, addressed, fetched = Signal(), Signal(), Signal()
        m.d.comb += looks.eq(self.done & self.here & (self.place + self.age + 1 == self.stored))
        calm = ~control.arm & ~moves
        m.d.sync += [addressed.eq(looks & calm), fetched.eq(addressed & calm)]
        self.addressed, self.fetched = addressed, fetched
        shown = Mux(self.second, self.sample, self.start[: dut.stamp_width])
        with m.If(fetched):
            m.d.comb += [Assert(getattr(csr, f"window_{k}") == shown) for k in range(WINDOW)]

    def _covers(self, m):
        dut = self.dut
        full = self.done & (self.stored == dut.depth) & self.fired
        m.d.comb += [
            # All of the ring was used again, some records are from before the trigger; the picked
            # sample is among these, in the middle of a run.
            Cover(full & (self.kept == 2) & self.fetched & ~self.late & (self.at != self.start)),
            # A sample behind a run that was longer than stamps count.
            Cover(full & self.fetched & (self.next - self.start == 1 << dut.stamp_width)),
            Cover(self.done & ~self.fired & (self.stored == 2) & self.fetched),
            Cover(full & (dut.csr.edge_0 == 1) & (self.kept == 0) & (self.trigger != self.end)),
        ]

    def _invariants(self, m):
        dut, width = self.dut, self.dut.stamp_width
        word = Signal(dut.width + width)
        m.d.comb += word.eq(Cat(self.sample, self.start[:width]))
        m.d.comb += [
            Assert(dut.now == self.time),
            Assert((dut.sample == self.x1) & (dut.past == self.x2)),
            Assert(dut.changed == (self.x2 != self.x3)),
            Assert(dut.begins == self.first),
            Assert((dut.running == self.open) & (dut.triggered == self.fired)),
            Assert(~self.first | self.open),
            Assert(dut.count == self.stored),
            Assert(self.stored <= dut.depth),
            Assert(self.first == (self.open & (self.stored == 0))),
            Assert((self.stored == dut.depth) | (dut.write == self.stored)),
            Assert(self.after <= self.stored),
            Assert(self.fired | (self.after == 0)),
            Assert(self.after + self.kept <= dut.depth),
            Assert(~self.open | (self.after + self.kept != dut.depth)),
            Assert(~self.fired | (self.after != 0)),
            Assert(dut.hit == self.meets),
            Assert((dut.place == self.place) & (dut.word == self.second)),
        ]
        with m.If(self.open | self.done):
            m.d.comb += Assert(dut.left + self.after + self.kept == dut.depth)
        with m.If((self.stored != 0) & ~self.open):
            m.d.comb += Assert(dut.end_time == self.end)
        with m.If(self.fired):
            m.d.comb += Assert(dut.trigger_time == self.trigger)
        self._record_invariants(m, word)

    def _record_invariants(self, m, word):
        """Where the records lie, and that no wrap of stamps lies within a run."""
        dut, width = self.dut, self.dut.stamp_width
        last, picked = dut.ram.read_port(domain="comb"), dut.ram.read_port(domain="comb")
        m.d.comb += [last.addr.eq(dut.write - 1), picked.addr.eq(dut.write - 1 - self.age)]
        before = Signal(len(dut.now))
        m.d.comb += before.eq(self.time - 1)
        following = Signal(len(dut.now) - width)
        m.d.comb += following.eq(self.start[width:] + 1)

        def same_period(early, late):
            return (early[width:] == late[width:]) & (early[:width] <= late[:width])

        with m.If(self.open & (self.stored != 0)):
            m.d.comb += [
                Assert(last.data == Cat(self.x3, self.newest[:width])),
                Assert(same_period(self.newest, before)),
                Assert(self.end == before),
            ]
        with m.If(self.done):
            m.d.comb += Assert(same_period(self.newest, self.end))
        with m.If(self.seen):
            m.d.comb += [
                Assert(self.stored != 0),
                Assert((self.age < self.stored) | (self.age == dut.depth)),
                Assert(self.has_next == (self.age != 0)),
                Assert(same_period(self.start, self.at)),
                Assert(~self.late | (self.age < self.after)),
                Assert(~self.late | self.fired),
            ]
            with m.If(self.has_next):
                wraps = (self.next[:width] == 0) & (self.next[width:] == following)
                later = (self.next[width:] == self.start[width:]) & (
                    self.next[:width] > self.at[:width]
                )
                m.d.comb += Assert(wraps | later)
            with m.Else():
                m.d.comb += Assert(self.start == self.newest)
                m.d.comb += Assert(same_period(self.at, self.end))
        with m.If(self.here):
            m.d.comb += Assert(picked.data == word)
        with m.If(self.addressed):
            m.d.comb += [Assert(self.here), Assert(dut.read_port.data == word)]
        with m.If(self.fetched):
            m.d.comb += Assert(self.here & (dut.shown == word))


PROOFS = (
    Proof(
        name="trace_core",
        quick=True,
        core="cores.probe.trace.TraceCore(2 bits, 4, stamp_width=2, time_width=5)",
        says="every sample from the trigger to the end is in one record; times follow exactly",
        module="trebuchet.cores.probe.trace",
        build=lambda cores: TraceCoreProof(
            cores.TraceCore((("a", 1), ("b", 1)), 4, stamp_width=2, time_width=5)
        ),
        depth=3,
        cover_depth=24,
        assumes="nothing",
        not_proved="other sizes; a reset while running",
        mutants=(
            Mutant("loses_changes", "self.begins | self.changed", "self.begins", depth=16),
            Mutant(
                "no_record_at_wrap",
                "stamp == 0",
                "stamp == 1",
                depth=20,
                within="TraceCore.elaborate",
            ),
            Mutant(
                "no_record_of_trigger",
                "stores.eq(running & (self.begins | self.changed | (stamp == 0) | fires))",
                "stores.eq(running & (self.begins | self.changed | (stamp == 0)))",
                depth=16,
            ),
            Mutant("one_record_less", "self.left == 1", "self.left == 2", depth=16),
            Mutant("triggers_again", "running & ~self.triggered & self.hit", "running & self.hit"),
            Mutant("reads_from_zero", "Mux(self.count[-1], self.write, 0)", "0", depth=20),
            Mutant("skips_a_word", "self.word == words - 1", "self.word == 0", depth=20),
            Mutant("rewinds_half", "[self.place.eq(0), self.word.eq(0)]", "[self.place.eq(0)]"),
            Mutant("stamp_of_next", "Cat(self.past, stamp)", "Cat(self.past, stamp + 1)"),
            Mutant("sample_of_next", "Cat(self.past, stamp)", "Cat(self.sample, stamp)"),
            Mutant("ignores_edges", "(~edge.any() | (moved & edge).any())", "1"),
            Mutant("all_edges", "(moved & edge).any()", "(moved & edge).all()"),
            Mutant("stop_waits_for_trigger", "control.stop", "control.stop & self.triggered"),
            Mutant("end_one_early", "self.end_time.eq(self.now)", "self.end_time.eq(self.now - 1)"),
            Mutant("keeps_a_record", "self.count.eq(0)", "self.count.eq(1)"),
        ),
    ),
)
