"""Proofs of what lies between the parts of the ECG role: ``cores/roles/ecg/role.py``, ``lane.py``.

All parts are hollow (:mod:`~trebuchet.formal.kit.parts`). The role: each pipeline has its lane,
each lane its place at dispatcher and memory arbiter; jobs with new weights go to their port and all
others to the lanes, none while weights are being replaced, and the port is told when no other job
is inside; the registers count the answers that are ``OK`` and their beats.

A lane: a job of an allowed length is loaded, any other answered ``BAD_LENGTH``, at most two are
inside; answers come in the order of the jobs, once each, with the job's identity and what the
writer said; each job's records go to its own result, beat by beat; behind a part of a record the
header for the next part is written to the session's scratch memory.

Not proved: the parts, which have proofs or tests of their own; a reset while running.
"""

from amaranth.hdl import Assert, Assume, Const, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib.wiring import In
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.roles.ecg.bank import PipelineSignature
from trebuchet.models.ecg import record as parts
from trebuchet.models.status import Status

from ...kit.inside import Inside, patched
from ...kit.parts import all_of, hollow, moves, same, same_memory
from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness

__all__ = ["PROOFS"]

WIDTH, SCRATCH = 32, 1 << 16


def free_inputs(m, dut):
    for _, member, port in dut.signature.flatten(dut):
        if member.flow is In and len(Value.cast(port)):
            free(m, port)


def maker(module, name, made):
    """In the place of a class of ``module``: makes one that is hollow, and remembers it."""
    real = getattr(module, name)

    def make(*args, **kwargs):
        made[name] = hollow(real(*args, **kwargs))
        return made[name]

    return make


class RoleProof(Elaboratable):
    def __init__(self, cores, pipelines, loadable):
        self.cores, self.pipelines, self.loadable = cores, pipelines, loadable

    def elaborate(self, platform):
        m = new_harness()
        self.dut = dut = self.cores.EcgRole(
            WIDTH, tag_width=3, pipelines=self.pipelines, loadable=self.loadable
        )
        for part in (dut.bank, *dut.lanes, *([dut.weights] if self.loadable else [])):
            hollow(part)
        shared = self.pipelines > 1
        hollowed = ("Dispatcher",) * shared + ("MemoryArbiter",) * (dut.ports > 1)
        made = {}
        with patched(self.cores, **{n: maker(self.cores, n, made) for n in hollowed}):
            self.inside = Inside(m, dut)
        free_inputs(m, dut)
        job, answer = dut.lanes[0].job, dut.lanes[0].answer
        if shared:
            dispatcher = made["Dispatcher"]
            job, answer = dispatcher.job, dispatcher.answer
            for k, lane in enumerate(dut.lanes):
                same(m, dispatcher.jobs[k], lane.job)
                same(m, lane.answer, dispatcher.answers[k])
        for k, lane in enumerate(dut.lanes):
            all_of(m, dut.bank.pipelines[k], lane.pipeline)
        mems = [unit.mem for unit in (*dut.lanes, *([dut.weights] if self.loadable else []))]
        if len(mems) == 1:
            same_memory(m, mems[0], dut.mem)
        else:
            arbiter = made["MemoryArbiter"]
            m.d.comb += Assert(Const(len(arbiter.ports)) == len(mems))
            for mem, port in zip(mems, arbiter.ports, strict=True):
                same_memory(m, mem, port)
            same_memory(m, arbiter.mem, dut.mem)
        if self.loadable:
            self._weights(m, job, answer)
        else:
            same(m, dut.job, job)
            same(m, answer, dut.answer)
        self._counters(m)
        return m

    def _weights(self, m, job, answer):
        dut, weights = self.dut, self.dut.weights
        ours = (dut.job.payload.kind == JobKind.CONFIGURE) | weights.partial
        most = 2 * self.pipelines
        inside = Signal(range(most + 1))
        m.d.sync += inside.eq(inside + moves(job) - moves(answer))
        m.d.comb += [
            Assume((inside != most) | ~job.ready),
            Assume((inside != 0) | ~answer.valid),
            Assume(~(answer.valid & weights.answer.valid)),
            Assert(Const(dut.outstanding) == most),
            Assert((self.inside.signal("inside") == inside) & (inside <= most)),  # an invariant
            Assert(weights.idle == (inside == 0)),
            Assert(job.valid == (dut.job.valid & ~ours & ~weights.busy)),
            Assert(weights.job.valid == (dut.job.valid & ours)),
            Assert(~job.valid | (Value.cast(job.payload) == Value.cast(dut.job.payload))),
            Assert(Value.cast(weights.job.payload) == Value.cast(dut.job.payload)),
            Assert(dut.bank.reload == weights.reload),
            Assert(dut.bank.load.valid == weights.load.valid),
            Assert(dut.bank.load.payload == weights.load.payload),
        ]
        with m.If(dut.job.valid):
            m.d.comb += Assert(moves(dut.job) == (moves(job) | moves(weights.job)))
        m.d.comb += Assert(dut.answer.valid == (answer.valid | weights.answer.valid))
        for one in (answer, weights.answer):
            with m.If(one.valid):
                payload = Value.cast(dut.answer.payload)
                m.d.comb += [
                    Assert(payload == Value.cast(one.payload)),
                    Assert(one.ready == dut.answer.ready),
                ]
        for name in ("weights_words", "weights_sum", "weights_dropped"):
            m.d.comb += Assert(getattr(dut.csr, name) == getattr(weights.csr, name))
        m.d.comb += [Cover(moves(weights.job)), Cover(moves(weights.answer) & (inside == 2))]

    def _counters(self, m):
        csr, given = self.dut.csr, self.dut.answer
        blocks, beats = Signal(32), Signal(32)
        with m.If(moves(given) & (given.payload.status == Status.OK)):
            m.d.sync += [blocks.eq(blocks + 1), beats.eq(beats + given.payload.length // 16)]
        m.d.comb += [
            Assert(csr.blocks == blocks[: len(csr.blocks)]),
            Assert(csr.beats == beats[: len(csr.beats)]),
            Cover(moves(given) & (blocks == 2) & (beats == 5)),
        ]


class LaneProof(Elaboratable):
    """``said``: identity, place and judgement of the job at work; ``coming`` of the next one."""

    FIELDS = ("source", "session", "id", "result", "room")

    def __init__(self, cores, scratch):
        self.cores, self.scratch = cores, scratch

    def elaborate(self, platform):
        m = new_harness()
        self.dut = dut = self.cores.EcgLane(
            PipelineSignature(10), WIDTH, 2, scratch=self.scratch, sessions=4
        )
        self.loader = hollow(dut.loader)
        self.join = "MemoryJoin" if self.scratch is None else "MemoryArbiter"
        self.made = {}
        with patched(
            self.cores, **{n: maker(self.cores, n, self.made) for n in ("ResultWriter", self.join)}
        ):
            self.inside = Inside(m, dut)
        self.writer = self.made["ResultWriter"]
        free_inputs(m, dut)
        self._wires(m)
        self._jobs(m)
        self._work(m)
        return m

    def _wires(self, m):
        dut, loader, join = self.dut, self.loader, self.made[self.join]
        same(m, loader.block, dut.pipeline.block)
        same(m, loader.pair, dut.pipeline.pair)
        names = ("reader", "writer") if self.scratch is None else (0, 1)
        ports = [getattr(join, n) if isinstance(n, str) else join.ports[n] for n in names]
        same_memory(m, loader.mem, ports[0])
        same_memory(m, self.writer.mem, ports[1])
        same_memory(m, join.mem, dut.mem)

    def _fits(self, job):
        samples, odd = job.length >> 1, job.length[0]
        block = ~odd & (samples >= 64) & (samples <= 4096)
        if self.scratch is None:
            return block
        part = (job.length & 7 == 0) & (
            (samples == 0) | ((samples >= 64) & (samples <= parts.MAX_PART))
        )
        return Mux(job.kind == JobKind.STREAM, part, block)

    def _jobs(self, m):
        """The job that is being loaded."""
        dut, load, job = self.dut, self.loader.request, self.dut.job.payload
        self.waits, self.loads, self.bad = Signal(), Signal(), Signal()
        self.coming = {n: Signal.like(job[n], name=f"coming_{n}") for n in self.FIELDS}
        self.starts = Signal()  # it becomes the one at work
        fits = self._fits(job)
        m.d.comb += [
            Assume(~self.loader.done | self.loads),
            Assert(load.valid == (dut.job.valid & ~self.waits & fits)),
            Assert(dut.job.ready == (load.ready & ~self.waits)),
        ]
        with m.If(load.valid):
            for name in ("base", "offset", "ring_log2", "length"):
                m.d.comb += Assert(load.payload.operand[name] == job[name])
            if self.scratch is not None:
                m.d.comb += [
                    Assert(load.payload.stream == (job.kind == JobKind.STREAM)),
                    Assert(load.payload.first == job.first),
                    Assert(load.payload.session == job.session),
                ]
        with m.If(self.loader.done):
            m.d.sync += self.loads.eq(0)
        with m.If(moves(dut.job)):
            m.d.sync += [self.waits.eq(1), self.loads.eq(fits), self.bad.eq(~fits)]
            m.d.sync += [self.coming[n].eq(job[n]) for n in self.FIELDS]
        with m.If(self.starts):
            m.d.sync += self.waits.eq(0)
        # Invariants.
        m.d.comb += [Assert(dut.waiting == self.waits), Assert(dut.loading == self.loads)]
        m.d.comb += Assert(~self.loads | self.waits)
        with m.If(self.waits):
            m.d.comb += Assert(dut.coming.bad == self.bad)
            m.d.comb += Assert(~self.loads | ~self.bad)
            m.d.comb += [Assert(dut.coming[n] == s) for n, s in self.coming.items()]

    def _work(self, m):
        """The job whose records are written: each state has its own part in what goes out."""
        dut, writer, inside = self.dut, self.writer, self.inside
        answer, record, end = dut.answer, dut.pipeline.record, dut.pipeline.end
        said = {n: Signal.like(s, name=f"said_{n}") for n, s in self.coming.items()}
        was_bad, status, length = Signal(), Signal(8), Signal.like(answer.payload.length)

        def at(*names):
            return sum(inside.state(name, "answer") for name in names) != 0

        m.d.comb += self.starts.eq(at("IDLE") & self.waits & ~self.loads)
        with m.If(self.starts):
            m.d.sync += [said[n].eq(self.coming[n]) for n in self.FIELDS]
            m.d.sync += [was_bad.eq(self.bad), length.eq(0)]
            m.d.sync += status.eq(Mux(self.bad, Status.BAD_LENGTH, Status.OK))
        with m.If(at("FINISH") & writer.done):
            m.d.sync += length.eq(Mux(writer.overflow, 0, writer.length))
            m.d.sync += status.eq(Mux(writer.overflow, Status.NO_ROOM, Status.OK))
        m.d.comb += Assert(answer.valid == at("ANSWER"))
        with m.If(answer.valid):
            m.d.comb += [Assert(answer.payload[n] == said[n]) for n in ("source", "session", "id")]
            m.d.comb += [
                Assert(answer.payload.status == status),
                Assert(answer.payload.length == length),
            ]
        # What comes after what.
        was = Signal(4, name="was")
        names = ["IDLE", "REQUEST", "RECORDS", "FINISH", "ANSWER"]
        names += [] if self.scratch is None else ["PLACE", "HEADER"]
        step = {name: k for k, name in enumerate(names)}
        follows = Signal(4, name="follows")
        m.d.comb += follows.eq(was)
        goes = {
            "IDLE": ((self.starts, Mux(self.bad, step["ANSWER"], step["REQUEST"])),),
            "REQUEST": ((Const(1), step["RECORDS"]),),
            "RECORDS": ((end.valid, step["FINISH"]),),
            "ANSWER": ((answer.ready, step["IDLE"]),),
        }
        after = step["ANSWER"]
        if self.scratch is not None:
            after = Mux(dut.zone.stream, step["PLACE"], step["ANSWER"])
            goes |= {"PLACE": ((Const(1), step["HEADER"]),)}
            goes |= {"HEADER": ((writer.done, step["ANSWER"]),)}
        goes |= {"FINISH": ((writer.done, after),)}
        for name in names:
            for condition, to in goes[name]:
                with m.If(at(name) & condition):
                    m.d.sync += was.eq(to)
            m.d.comb += Assert(at(name) == (was == step[name]))
        m.d.comb += [
            Assert(was < len(names)),
            Assert(end.ready == at("RECORDS")),
            Assert(writer.finish == (at("RECORDS") & end.valid)),
            Assert(writer.request.valid == at(*(n for n in names if n in ("REQUEST", "PLACE")))),
        ]
        busy = ~at("IDLE", "ANSWER")
        with m.If(at("REQUEST")):
            m.d.comb += Assert(writer.request.payload.addr == said["result"])
            m.d.comb += Assert(writer.request.payload.room == said["room"])
        with m.If(~at("IDLE")):
            m.d.comb += [Assert(dut.current[n] == said[n]) for n in self.FIELDS]
            m.d.comb += [Assert(answer.payload.status == status)]
            m.d.comb += [Assert(answer.payload.length == length)]
        with m.If(busy):
            m.d.comb += Assert(~was_bad)
        with m.If(at("REQUEST", "RECORDS", "FINISH")):
            m.d.comb += Assert((status == Status.OK) & (length == 0))
        m.d.comb += [
            Cover(moves(answer) & (answer.payload.status == Status.BAD_LENGTH) & self.waits),
            Cover(moves(answer) & (answer.payload.length == 32) & (answer.payload.session == 1)),
        ]
        self._beats(m, at, record)

    def _beats(self, m, at, record):
        """The words of each record, and of a header, in their order."""
        packet, n = self.writer.packet, 128 // WIDTH
        number = Signal(range(n))
        heading = at("HEADER") if self.scratch is not None else Const(0)
        flowing = at("RECORDS") & record.valid
        begun = Signal()
        m.d.comb += [
            Assert(self.inside.signal("at") == number),  # an invariant, as the next
            Assert(self.inside.signal("begun") == begun),
            Assert(packet.valid == (flowing | heading)),
            Assert(record.ready == (at("RECORDS") & packet.ready & (number == n - 1))),
        ]
        with m.If(self.writer.request.valid):
            m.d.sync += begun.eq(0)
        with m.If(moves(packet)):
            m.d.sync += [number.eq(number + 1), begun.eq(1)]
        with m.If(packet.valid):
            m.d.comb += [
                Assert(packet.payload.first == ~begun),
                Assert(packet.payload.last == (heading & (number == n - 1))),
            ]
        words = Value.cast(record.payload)
        with m.If(flowing):
            m.d.comb += Assert(packet.payload.data == words.word_select(number, WIDTH))
        # A record that waits stays, and `done` comes for a header with its last beat taken.
        waits, past = Signal(), Signal(len(words))
        m.d.sync += [waits.eq(record.valid & ~record.ready), past.eq(words)]
        with m.If(waits):
            m.d.comb += Assume(record.valid & (words == past))
        if self.scratch is not None:
            m.d.comb += Assume(~self.writer.done | ~heading | (number == 0))


def _role(name, pipelines, loadable, mutants):
    options = "loadable weights" if loadable else "fixed weights"
    return Proof(
        name=name,
        core=f"cores.roles.ecg.role.EcgRole({pipelines} pipelines, {options}), its parts hollow",
        says="jobs, answers, memory ports and weights go where they belong; no job runs while "
        "weights are replaced; registers count",
        module="trebuchet.cores.roles.ecg.role",
        build=lambda cores: RoleProof(cores, pipelines, loadable),
        depth=2,
        cover_depth=10,
        mutants=mutants,
        assumes="no more answers than jobs; not more jobs than the lanes take",
        not_proved="the parts; other numbers of pipelines; a reset while running",
    )


def _lane(name, scratch, mutants):
    return Proof(
        name=name,
        core=f"cores.roles.ecg.lane.EcgLane(32, {'with' if scratch else 'no'} scratch memory), "
        "loader and writer hollow",
        says="jobs of allowed lengths are loaded and answered in order, once, as the writer says; "
        "records go to their own result",
        module="trebuchet.cores.roles.ecg.lane",
        build=lambda cores: LaneProof(cores, scratch),
        depth=2,
        cover_depth=14,
        mutants=mutants,
        assumes="the loader is done once for each request; a header's last beat ends its packet",
        not_proved="the parts; the header's two values; a reset while running",
    )


PROOFS = (
    _role(
        "ecg_role_plain",
        1,
        False,
        (
            Mutant(
                "counts_all",
                "self.answer.ready & (given.status == Status.OK)",
                "self.answer.ready",
                8,
            ),
            Mutant("beats_of_eight", "given.length >> 4", "given.length >> 3", 8),
        ),
    ),
    _role(
        "ecg_role_loadable",
        2,
        True,
        (
            Mutant(
                "job_meanwhile",
                "ours, weights.job.ready, job.ready & ~weights.busy",
                "ours, weights.job.ready, job.ready",
                8,
            ),
            Mutant("not_idle", "weights.idle.eq(inside == 0)", "weights.idle.eq(1)", 8),
            Mutant(
                "lanes_swapped",
                "wiring.connect(m, lane.answer, dispatcher.answers[i])",
                "wiring.connect(m, lane.answer, dispatcher.answers[1 - i])",
                8,
            ),
        ),
    ),
    _lane(
        "ecg_lane_plain",
        None,
        (
            Mutant(
                "one_too_short",
                "(samples >= model.MIN_SAMPLES) & (samples <= model.MAX_SAMPLES)",
                "(samples > model.MIN_SAMPLES) & (samples <= model.MAX_SAMPLES)",
                6,
            ),
            Mutant("not_loaded", "self.waiting & ~self.loading", "self.waiting", 8),
            Mutant(
                "length_of_another",
                "[answer.length.eq(0), answer.status.eq(Status.NO_ROOM)]",
                "[answer.status.eq(Status.NO_ROOM)]",
                14,
            ),
            Mutant(
                "taken_while_one_waits",
                "self.job.ready.eq(~self.waiting & load.ready)",
                "self.job.ready.eq(load.ready)",
                8,
            ),
        ),
    ),
    _lane(
        "ecg_lane_stream",
        SCRATCH,
        (
            Mutant(
                "header_is_no_packet",
                "packet.payload.last.eq(heading & last_beat)",
                "packet.payload.last.eq(0)",
                14,
            ),
            Mutant("header_for_all", "with m.If(self.zone.stream):", "with m.If(1):", 14),
        ),
    ),
)
