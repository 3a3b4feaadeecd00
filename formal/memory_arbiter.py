"""Proof of ``cores/memory_arbiter.py``: two ports, without FIFOs for read data.

Contract, over public ports: the stream rules on everything the arbiter drives, given those on
everything it is driven with; each command comes from the port that its tag names, unaltered; write
data come from the owners of the write commands in the order of those commands; each response goes
to the port that its tag names, and to no other.

The owner whose data pass is read off the arbiter's queue of owners, about which the invariants for
induction speak too.

Not proved: that commands take turns (``stream_arbiter_beats`` proves it of the arbiter inside);
progress when a requester withholds write data or a response is not taken, which the data sheet
excludes; other numbers of ports; behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Signal, Value

from .buffers import fifo_invariants
from .proof import Mutant, Proof
from .stream import Queue, free, new_harness, stream_rules

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


PROOFS = (
    Proof(
        name="memory_arbiter",
        core="cores.memory_arbiter.MemoryArbiter(2, 32, 1, write_bursts=2)",
        says="commands, write data and responses go between a port and its owner, in order",
        module="trebuchet.cores.memory_arbiter",
        build=lambda cores: MemoryArbiterProof(cores.MemoryArbiter(2, 32, 1, write_bursts=2)),
        depth=3,
        cover_depth=14,
        mutants=(
            Mutant("forgets_room", "~theirs.payload.write | order.i.ready", "1"),
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
)
