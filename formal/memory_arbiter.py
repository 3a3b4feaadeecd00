"""Proofs of ``cores/memory_arbiter.py``: two prompt ports, without FIFOs for read data.

Contract, over public ports: the stream rules on everything the arbiter drives, given those on
everything it is driven with; each command comes from the port that its tag names, unaltered; write
data come from the owners of the write commands in the order of those commands; each response goes
to the port that its tag names, and to no other.

The owner whose data pass is read off the arbiter's queue of owners, about which the invariants for
induction speak too.

With FIFOs for read data, of three ports: what a port gets is what the memory sent with its number,
in order; the memory waits only for a port without room; a command that waits sees at most two
others.

With two classes, of a prompt port in class 0, a prompt and a buffered one in class 1: a command
that waits sees at most ``waiting_bound`` others, whatever all ports do; at most one cycle without a
command on offer while one waits and the queue of owners has room. No head-of-line blocking: while
the buffered port's data are due, ``mem.wdata.valid`` is 1; while a prompt port's are, it is what
that port's is. The buffer is hollow: it keeps what ``write_buffer`` proves, and no more.

Narrow: a requester with fewer tag bits than the port is connected field by field.

Not proved: progress when a prompt requester withholds write data or a response is not taken, which
the data sheet excludes; other numbers of ports; behaviour under a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib.wiring import In

from ..cores.memory import MemorySignature
from .buffers import fifo_invariants
from .kit.inside import Inside, RegisterStreamFifo, patched
from .kit.parts import Opened, same_memory
from .kit.proof import Mutant, Proof
from .priority_arbiter import PriorityInvariants
from .stream import Queue, free, new_harness, stream_rules, within

__all__ = ["PROOFS"]


def _moves(stream):
    return stream.valid & stream.ready


class MemoryArbiterProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        mem, ports = dut.mem, [dut.ports[k] for k in range(dut.n)]
        self._rules(m, mem, ports)
        self._commands(m, mem, ports)
        queue = self._write_data(m, mem, ports)
        self._responses(m, mem, ports)
        fifo_invariants(m, dut.order, queue)
        return m

    def _rules(self, m, mem, ports):
        for name in ("cmd", "wdata"):
            stream_rules(m, getattr(mem, name), Assert, f"mem_{name}")
            free(m, getattr(mem, name).ready)
            for k, port in enumerate(ports):
                s = getattr(port, name)
                free(m, s.valid, s.payload)
                stream_rules(m, s, Assume, f"port{k}_{name}")
        for name in ("rdata", "wdone"):
            s = getattr(mem, name)
            free(m, s.valid, s.payload)
            stream_rules(m, s, Assume, f"mem_{name}")
            for k, port in enumerate(ports):
                free(m, getattr(port, name).ready)
                stream_rules(m, getattr(port, name), Assert, f"port{k}_{name}")

    def _owner(self, tag):
        return tag[self.dut.tag_width :]

    def _commands(self, m, mem, ports):
        for k, port in enumerate(ports):
            mine = mem.cmd.valid & (self._owner(mem.cmd.payload.tag) == k)
            m.d.comb += Assert(_moves(port.cmd) == (mine & mem.cmd.ready))
            with m.If(mine):
                for name in ("write", "addr", "beats"):
                    m.d.comb += Assert(mem.cmd.payload[name] == port.cmd.payload[name])
                own = mem.cmd.payload.tag[: self.dut.tag_width]
                m.d.comb += Assert(own == port.cmd.payload.tag)

    def _write_data(self, m, mem, ports):
        owner = Signal(range(self.dut.n))  # of the oldest write command without all its data
        m.d.comb += owner.eq(self.dut.order.o.payload)
        queue = Queue(
            m,
            puts=_moves(mem.cmd) & mem.cmd.payload.write,
            put_word=self._owner(mem.cmd.payload.tag),
            gets=_moves(mem.wdata) & mem.wdata.payload.last,
            get_valid=mem.wdata.valid,
            get_word=owner,
            capacity=self.dut.write_bursts,
        )
        for k, port in enumerate(ports):
            moves = _moves(mem.wdata) & (owner == k)
            m.d.comb += Assert(_moves(port.wdata) == moves)
            with m.If(mem.wdata.valid & (owner == k)):
                same = Value.cast(mem.wdata.payload) == Value.cast(port.wdata.payload)
                m.d.comb += Assert(same)
        both = Signal(2)
        with m.If(_moves(mem.wdata)):
            m.d.sync += both.eq(both | (1 << owner))
        m.d.comb += Cover(both.all() & (queue.level == self.dut.write_bursts))
        return queue

    def _responses(self, m, mem, ports):
        for name in ("rdata", "wdone"):
            source = getattr(mem, name)
            tag = source.payload.tag
            taken = Signal(name=f"{name}_taken")
            m.d.comb += taken.eq(sum(_moves(getattr(port, name)) for port in ports) == 1)
            m.d.comb += Assert(taken == _moves(source))
            m.d.comb += Cover(taken & (self._owner(tag) == len(ports) - 1))
            for k, port in enumerate(ports):
                target = getattr(port, name)
                m.d.comb += Assert(target.valid == (source.valid & (self._owner(tag) == k)))
                with m.If(target.valid):
                    own = target.payload.tag == tag[: self.dut.tag_width]
                    m.d.comb += Assert(own)
                    if name == "rdata":
                        m.d.comb += Assert(target.payload.data == source.payload.data)
                        m.d.comb += Assert(target.payload.last == source.payload.last)


class ReadFifosProof(Elaboratable):
    """Three ports with FIFOs of two beats of read data."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut, mem = self.dut, self.dut.mem
        inside = Inside(m, dut)
        ports = [dut.ports[k] for k in range(dut.n)]
        free(m, mem.cmd.ready, mem.wdata.ready, mem.rdata.valid, mem.rdata.payload)
        stream_rules(m, mem.rdata, Assume, "mem_rdata")
        owner = mem.rdata.payload.tag[dut.tag_width :]
        m.d.comb += Assume(owner < dut.n)
        for k, port in enumerate(ports):
            free(m, port.cmd.valid, port.cmd.payload, port.rdata.ready)
            stream_rules(m, port.cmd, Assume, f"port{k}_cmd")
            stream_rules(m, port.rdata, Assert, f"port{k}_rdata")
            beat = mem.rdata.payload
            queue = Queue(
                m,
                puts=_moves(mem.rdata) & (owner == k),
                put_word=Cat(beat.data, beat.tag[: dut.tag_width], beat.last),
                gets=_moves(port.rdata),
                get_valid=port.rdata.valid,
                get_word=port.rdata.payload,
                capacity=dut.rdata_depth,
            )
            fifo_invariants(m, inside.parts[f"rdata_fifo{k}"], queue)
            with m.If(mem.rdata.valid & (owner == k)):
                m.d.comb += Assert(mem.rdata.ready == (queue.level != dut.rdata_depth))
        self._turns(m, ports, inside.parts["arbiter"].index)
        seen = Signal(dut.n)
        m.d.sync += seen.eq(seen | Cat(_moves(port.rdata) for port in ports))
        m.d.comb += Cover(seen.all())
        return m

    def _turns(self, m, ports, grant):
        """An arbitrary port whose command waits."""
        n = len(ports)
        asker, left = Signal(range(n)), Signal(range(n + 1))
        waits = Array(port.cmd.valid for port in ports)[asker]
        taken = Array(port.cmd.ready for port in ports)[asker]
        distance = Signal(range(n + 1))
        m.d.comb += [
            asker.eq(AnyConst(len(asker))),
            Assume(asker < n),
            Assert(grant < n),
            distance.eq(Mux(asker >= grant, 0, n) + asker - grant),
            Assert(left <= n - 1),
            Cover((left == n - 1) & waits & taken),
        ]
        with m.If(~waits | taken):
            m.d.sync += left.eq(0)
        with m.Elif(_moves(self.dut.mem.cmd)):
            m.d.sync += left.eq(left + 1)
        with m.If(waits):
            m.d.comb += Assert(left + distance <= n - 1)


class ClassesProof(Elaboratable):
    """Port 0 in class 0, ports 1 and 2 in class 1; port 2 behind a hollow ``WriteBuffer``."""

    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        with patched(self.cores, StreamFifo=RegisterStreamFifo):
            self.dut = dut = self.cores.MemoryArbiter(
                3, 32, 1, write_bursts=2, priority=(0, 1, 1), patience=2, prompt=(0, 1)
            )
        opened = Opened(self.cores, dut, "formal", hollowed=("WriteBuffer",))
        m.submodules.dut = opened.fragment
        buffer, mem = opened.part("WriteBuffer"), dut.mem
        for _, member, port in dut.signature.flatten(dut):
            if member.flow is In:
                free(m, port)
        same_memory(m, dut.ports[2], buffer.i)
        sources = [dut.ports[0], dut.ports[1], buffer.o]
        for k, source in enumerate(sources):
            for name in ("cmd", "wdata"):
                stream_rules(m, getattr(source, name), Assume, f"source{k}_{name}")
        for name in ("cmd", "wdata"):
            stream_rules(m, getattr(mem, name), Assert, f"mem_{name}")
        self._data(m, sources)
        self._waiting(m, sources)
        return m

    def _data(self, m, sources):
        """Whose data are due, by the cells of the queue of owners; those of port 2 are there."""
        dut, mem, fifo = self.dut, self.dut.mem, self.dut.order.fifo
        buffered, owed = sources[2], Signal(8, name="owed")
        free(m, fifo.shows)
        granted = _moves(buffered.cmd) & buffered.cmd.payload.write
        sent = _moves(buffered.wdata)
        m.d.sync += owed.eq(owed + Mux(granted, buffered.cmd.payload.beats + 1, 0) - sent)
        beat = buffered.wdata
        m.d.comb += [
            Assume(~(buffered.cmd.valid & buffered.cmd.payload.write) | (owed == 0)),
            Assume(beat.valid == (owed != 0)),
            Assume(~beat.valid | (beat.payload.last == (owed == 1))),
        ]
        owner, due = fifo.cells[0], dut.order.o.valid
        for k, source in enumerate(sources):
            m.d.comb += Assert(_moves(source.wdata) == (_moves(mem.wdata) & (owner == k)))
            with m.If(due & (owner == k)):
                same = Value.cast(mem.wdata.payload) == Value.cast(source.wdata.payload)
                m.d.comb += [Assert(mem.wdata.valid == source.wdata.valid), Assert(same)]
        with m.If(due & (owner == 2)):
            m.d.comb += Assert(mem.wdata.valid)  # whatever port 2 does
        with m.If(~due):
            m.d.comb += Assert(~mem.wdata.valid)
        # Invariants: port 2 is in the queue if its data are due, and once.
        held = [(fifo.level > k) & (cell == 2) for k, cell in enumerate(fifo.cells)]
        m.d.comb += [
            Assert(fifo.level <= dut.write_bursts),
            Assert((held[0] | held[1]) == (owed != 0)),
            Assert(~(held[0] & held[1])),
            Assert(owed <= 64),
            Assert(~fifo.shown | (fifo.level != 0)),
            *(Assert((fifo.level <= k) | (cell < dut.n)) for k, cell in enumerate(fifo.cells)),
            Cover(due & (owner == 2) & _moves(mem.wdata) & (fifo.level == 2)),
        ]

    def _waiting(self, m, sources):
        dut, mem, arbiter, room = self.dut, self.dut.mem, self.dut.arbiter, self.dut.order.i.ready
        valids = [source.cmd.valid for source in sources]
        within(m, ~Cat(valids).any() | mem.cmd.valid | ~room, 1, "cmd")
        invariants = PriorityInvariants(m, arbiter, valids)
        held = Signal(name="was_held")
        m.d.sync += held.eq(arbiter.o.valid & ~arbiter.o.ready)
        m.d.comb += Assert(arbiter.held == held)
        bounds = [dut.waiting_bound(k) for k in range(dut.n)]
        taken = Array(source.cmd.ready for source in sources)
        chosen, waits, others = invariants.bounded(bounds, _moves(mem.cmd), lambda k: taken[k])
        for k, bound in enumerate(bounds):
            m.d.comb += Cover((chosen == k) & waits & (others == bound))


class NarrowProof(Elaboratable):
    """A requester with one tag bit at a port with three."""

    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        ours = MemorySignature(32, 1).create()
        theirs = MemorySignature(32, 3).flip().create()
        self.cores.connect_narrow(m, ours, theirs)
        for out, into in ((ours, theirs), (theirs, ours)):
            for name in ("cmd", "wdata") if out is ours else ("rdata", "wdone"):
                source, sink = getattr(out, name), getattr(into, name)
                free(m, source.valid, source.payload, sink.ready)
                stream_rules(m, source, Assume, f"source_{name}")
                stream_rules(m, sink, Assert, f"sink_{name}")
                m.d.comb += [Assert(sink.valid == source.valid), Assert(sink.ready == source.ready)]
                for field in source.payload.shape().members:
                    wanted = source.payload[field]
                    if field == "tag":
                        wanted = wanted[:1]
                    m.d.comb += Assert(sink.payload[field] == wanted)
                m.d.comb += Cover(sink.valid & sink.ready)
        return m


PROOFS = (
    Proof(
        name="memory_arbiter",
        quick=True,
        core="cores.memory_arbiter.MemoryArbiter(2, 32, 1, write_bursts=2, prompt=(0, 1))",
        says="commands, write data and responses go between a port and its owner, in order",
        module="trebuchet.cores.memory_arbiter",
        build=lambda cores: MemoryArbiterProof(
            cores.MemoryArbiter(2, 32, 1, write_bursts=2, prompt=(0, 1))
        ),
        depth=3,
        cover_depth=14,
        mutants=(
            Mutant("forgets_room", "~arbiter.o.payload.write | order.i.ready", "1"),
            Mutant(
                "swaps_data",
                "order.i.payload.eq(arbiter.index)",
                "order.i.payload.eq(~arbiter.index)",
            ),
            Mutant(
                "first_beat_ends", "mem.wdata.ready & mem.wdata.payload.last", "mem.wdata.ready"
            ),
            Mutant("wrong_tag", "source.payload.tag[self.tag_width :]", "source.payload.tag[:1]"),
        ),
        not_proved="turns (see stream_arbiter_beats); progress when a requester breaks its rules",
    ),
    Proof(
        name="memory_arbiter_reads",
        core="cores.memory_arbiter.MemoryArbiter(3, 32, 1, write_bursts=2, rdata_depth=2, "
        "prompt=range(3))",
        says="read data wait for their own port alone; a command waits for two others at most",
        module="trebuchet.cores.memory_arbiter",
        build=lambda cores: ReadFifosProof(
            cores.MemoryArbiter(3, 32, 1, write_bursts=2, rdata_depth=2, prompt=range(3))
        ),
        depth=3,
        cover_depth=14,
        mutants=(
            Mutant("wrong_tag_back", "out.payload.tag[: self.tag_width]", "out.payload.tag[1:]"),
            Mutant(
                "loses_beats", "out.ready.eq(target.ready)", "out.ready.eq(1)", within="_responses"
            ),
            Mutant("wrong_port", "source.payload.tag[self.tag_width :]", "source.payload.tag[:2]"),
        ),
        not_proved="write data (memory_arbiter proves them without FIFOs); a reset while running",
    ),
    Proof(
        name="memory_arbiter_classes",
        core="cores.memory_arbiter.MemoryArbiter(3, 32, 1, write_bursts=2, priority=(0, 1, 1), "
        "patience=2, prompt=(0, 1))",
        says="no command waits for more others than its bound; a buffered port's data never wait",
        module="trebuchet.cores.memory_arbiter",
        build=ClassesProof,
        depth=3,
        cover_depth=14,
        mutants=(
            Mutant(
                "waits_for_command",
                "mem.wdata.valid.eq(theirs.valid & order.o.valid)",
                "mem.wdata.valid.eq(theirs.valid & order.o.valid & ~mem.cmd.valid)",
            ),
            Mutant("swaps_owner", "order.i.payload.eq(arbiter.index)", "order.i.payload.eq(0)"),
            Mutant("keeps_owner", "mem.wdata.ready & mem.wdata.payload.last", "0"),
            Mutant(
                "passes_over",
                "m.d.comb += ours.valid.eq(theirs.valid)",
                "m.d.comb += ours.valid.eq(theirs.valid & (order.i.ready | ~theirs.payload.write))",
                20,
                context="mem, order = self.mem, self.order",
            ),
            Mutant(
                "promises_too_much",
                "return self.arbiter.waiting_bound(port)",
                "return self.n - 1",
                20,
            ),
        ),
        assumes="the stream rules on the inputs; of the buffer what its proof asserts",
        not_proved="responses (memory_arbiter); a prompt port that withholds data; a reset",
    ),
    Proof(
        name="memory_narrow",
        core="cores.memory_arbiter.connect_narrow, of 1 tag bit to 3",
        says="a requester with a narrower tag is connected field by field, both ways",
        module="trebuchet.cores.memory_arbiter",
        build=NarrowProof,
        depth=1,
        cover_depth=4,
        mutants=(
            Mutant(
                "always_ready",
                "m.d.comb += [ours.valid.eq(theirs.valid), theirs.ready.eq(ours.ready)]\n"
                "for name in ours.payload.shape().members:\n"
                "    m.d.comb += ours.payload[name].eq(theirs.payload[name])",
                "m.d.comb += [ours.valid.eq(theirs.valid), theirs.ready.eq(1)]\n"
                "for name in ours.payload.shape().members:\n"
                "    m.d.comb += ours.payload[name].eq(theirs.payload[name])",
                within='for member in ("cmd", "wdata"):',
            ),
            Mutant(
                "no_data",
                "[theirs.valid.eq(ours.valid), ours.ready.eq(theirs.ready)]",
                "[theirs.valid.eq(ours.valid), ours.ready.eq(1)]",
                within='for member in ("rdata", "wdone"):',
            ),
        ),
    ),
)
