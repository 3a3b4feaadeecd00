"""Proof of ``Commands`` in ``cores/ltl/commands.py``, against its data sheet.

A command that comes while it is idle is either of no connection, which ``wrong`` tells, and then
does nothing, or is handed to the table that it names, and for a receive connection that is opened
to the responder, once each, with the registers' fields; the peer is written if it opens. It ends
when all have taken it.

Not proved: a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Signal, Value
from trebuchet.cores.ltl.config import LtlConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .parts import opened

__all__ = ["PROOFS"]

SMALL = LtlConfig(connections=3, slots=4, window=2, max_message=64, buffer_beats=8, seq_bits=4)


class CommandsProof(Elaboratable):
    def __init__(self, cores):
        self.cores, self.dut = cores, cores.Commands(SMALL)

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        m.submodules.dut = opened(dut, platform, self.cores)
        ports = (dut.send, dut.receive, dut.opened)
        free(m, dut.command, dut.fields, dut.peer_fields, *(port.ready for port in ports))
        started, held, past = Signal(), Signal(32), Signal.like(Value.cast(dut.fields))
        owed, busy = Signal(3, name="owed"), Signal(name="spec_busy")
        # Registers do not change while a command is under way.
        m.d.sync += past.eq(dut.fields)
        m.d.comb += Assume(~busy | (Value.cast(dut.fields) == past))
        opens, receives, index = held[1], held[2], held[16:]
        exists = index < SMALL.connections
        m.d.comb += [
            busy.eq(started | (owed != 0) | ~dut.fsm.ongoing("IDLE")),
            Assert(dut.busy == busy),
            Assert(~(started & (owed != 0))),
            Assert(~started | dut.fsm.ongoing("START")),
            Assert((owed == 0) | dut.fsm.ongoing("WAIT")),
            Assert(~busy | (held == dut.held)),
            Assert(dut.wrong == (started & ~exists)),
            Assert(dut.peer_en == (started & exists & opens)),
            Assert(Cat(port.valid for port in ports) == owed),
        ]
        ended = Signal()
        m.d.sync += [started.eq(0), ended.eq(dut.fsm.ongoing("WAIT") & (owed == 0))]
        m.d.comb += Assert(~ended | ~busy)
        with m.If(~busy & dut.command[0]):
            m.d.sync += [started.eq(1), held.eq(dut.command)]
        with m.If(started & exists):
            m.d.sync += owed.eq(Cat(~receives, receives, receives & opens))
        with m.Else():
            m.d.sync += owed.eq(owed & ~Cat(port.ready for port in ports))
        with m.If(dut.peer_en):
            m.d.comb += [
                Assert(dut.peer_addr == Cat(index[:2], receives)),
                Assert(Value.cast(dut.peer) == Value.cast(dut.peer_fields)),
            ]
        for name, port in (("send", dut.send), ("receive", dut.receive)):
            stream_rules(m, port, Assert, name)
            with m.If(port.valid):
                m.d.comb += [
                    Assert(port.payload.open == opens),
                    Assert(port.payload.connection == index),
                ]
                m.d.comb += [
                    Assert(port.payload[field] == dut.fields[field])
                    for field in ("incarnation", "rto", "vc", "credit")
                ]
        stream_rules(m, dut.opened, Assert, "opened")
        m.d.comb += Assert(~dut.opened.valid | (dut.opened.payload == index))
        twice = Signal()
        with m.If(dut.wrong):
            m.d.sync += twice.eq(1)
        m.d.comb += [
            Cover(twice & (owed == 0b100)),
            Cover(dut.peer_en & (dut.peer_addr == 0b110)),
            Cover(dut.send.valid & ~dut.send.payload.open & (index == 2)),
        ]
        return m


PROOFS = (
    Proof(
        name="ltl_commands",
        quick=True,
        core="cores.ltl.commands.Commands(3 connections)",
        says="each command reaches its table once, with its fields, or is told to be wrong",
        module="trebuchet.cores.ltl.commands",
        build=CommandsProof,
        depth=3,
        cover_depth=10,
        mutants=(
            Mutant(
                "one_index_more", "index >= config.connections", "index > config.connections", 6
            ),
            Mutant(
                "opens_when_closing",
                "self.opened.valid.eq(held[2] & held[1])",
                "self.opened.valid.eq(held[2])",
                6,
            ),
            Mutant("writes_peer_always", "self.peer_en.eq(held[1])", "self.peer_en.eq(1)", 6),
            Mutant(
                "wrong_half",
                "index[: config.connection_layout.width], held[2]",
                "index[: config.connection_layout.width], ~held[2]",
                6,
            ),
        ),
        assumes="registers keep their values while busy",
    ),
)
