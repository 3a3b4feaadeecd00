"""Proof of ``MemoryGate`` in ``cores/roles/gate.py``.

Contract, over public ports: the stream rules at the memory's side, given those of the requester
until the gate is shut, and whatever it does after that, for it is being reset; nothing is altered
on the way; each write command gets exactly as many beats as it asked for, ``last`` on the final
one; commands and data of the requester move only with the memory's; once shut, nothing comes from
the requester, and the bytes that still go are not strobed; responses are taken whenever the gate is
to stop; ``idle`` means that the memory owes nothing and is owed nothing. Progress: ``shut`` comes
within 3 cycles of ``stop`` in which the memory takes what is offered, and data that are owed are
offered.

Not proved: other widths; that the memory answers (``idle`` waits for it); behaviour under a reset
while running. Of write data, stability is stated of strobed bytes only (``cores/memory.py``,
rule 3).
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS"]

#: More bursts than the gate lets pass.
LIMIT = 31


def _moves(stream):
    return stream.valid & stream.ready


class MemoryGateProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        i, o = dut.i, dut.o
        for port in (i.cmd, i.wdata):
            free(m, port.valid, port.payload)
        for port in (o.rdata, o.wdone):
            free(m, port.valid, port.payload)
        free(m, o.cmd.ready, o.wdata.ready, i.rdata.ready, i.wdone.ready, dut.stop)
        self._requester(m, i.cmd, "cmd", Value.cast(i.cmd.payload))
        self._requester(m, i.wdata, "wdata", self._strobed(i.wdata.payload))
        self._stops(m)
        stream_rules(m, o.cmd, Assert, "o_cmd")
        self._holds(m, o.wdata, self._strobed(o.wdata.payload))
        stream_rules(m, o.rdata, Assume, "o_rdata")
        stream_rules(m, o.wdone, Assume, "o_wdone")
        owing = self._data(m)
        pending = self._responses(m)
        self._passes(m)
        m.d.comb += Assert(~dut.idle | (dut.shut & ~owing & (pending == 0)))
        m.d.comb += Assert(dut.idle | ~(dut.shut & ~owing & (pending == 0)))
        within(m, ~dut.stop | dut.shut | ~(o.cmd.ready & o.wdata.ready), 3, "shut")
        filled, was_idle = Signal(), Signal()
        m.d.sync += filled.eq((filled & dut.stop) | (dut.shut & _moves(o.wdata)))
        m.d.sync += was_idle.eq(was_idle | (dut.idle & filled))
        m.d.comb += [Cover(dut.idle & filled), Cover(was_idle & _moves(i.wdata) & ~dut.stop)]
        return m

    @staticmethod
    def _strobed(payload):
        """A beat of write data without the bytes that mean nothing."""
        lanes = [
            Mux(payload.strb[k], payload.data.word_select(k, 8), 0)
            for k in range(len(payload.strb))
        ]
        return Cat(*lanes, payload.strb, payload.last)

    def _requester(self, m, stream, name, word):
        """Rule 2 of the requester, as long as it is not being reset."""
        stalled = Signal(name=f"i_{name}_stalled")
        past = Signal(len(word), name=f"i_{name}_past")
        m.d.sync += [stalled.eq(stream.valid & ~stream.ready & ~self.dut.shut), past.eq(word)]
        with m.If(stalled & ~self.dut.shut):
            m.d.comb += [Assume(stream.valid), Assume(word == past)]

    def _holds(self, m, stream, word):
        stalled, past = Signal(name="o_wdata_stalled"), Signal(len(word), name="o_wdata_past")
        m.d.sync += [stalled.eq(stream.valid & ~stream.ready), past.eq(word)]
        with m.If(stalled):
            m.d.comb += [Assert(stream.valid), Assert(word == past)]

    def _stops(self, m):
        """``stop`` stays until ``idle``; then the requester is fresh from reset, and quiet."""
        dut = self.dut
        stopping, fresh = Signal(), Signal()
        m.d.sync += [stopping.eq(dut.stop & ~dut.idle), fresh.eq(dut.shut)]
        m.d.comb += Assume(~stopping | dut.stop)
        with m.If(dut.shut & ~dut.stop):
            m.d.comb += [Assume(~dut.i.cmd.valid), Assume(~dut.i.wdata.valid)]
        m.d.comb += Assert(~dut.shut | dut.stop | fresh)

    def _data(self, m):
        """As many beats as commanded; returns whether some are owed."""
        dut, o = self.dut, self.dut.o
        owed = Signal(8)
        begins = _moves(o.cmd) & o.cmd.payload.write
        m.d.sync += owed.eq(owed + Mux(begins, o.cmd.payload.beats + 1, 0) - _moves(o.wdata))
        m.d.comb += [
            Assert(~o.wdata.valid | (owed != 0)),
            Assert(~begins | (owed == 0)),
            Assert(owed <= 64),
            Assert(dut.owing == (owed != 0)),  # an invariant
            Assert(~dut.owing | (dut.left == owed - 1)),  # an invariant
            Assert(~(dut.shut & (owed != 0)) | o.wdata.valid),
        ]
        with m.If(o.wdata.valid):
            m.d.comb += Assert(o.wdata.payload.last == (owed == 1))
        return owed != 0

    def _responses(self, m):
        dut, o = self.dut, self.dut.o
        pending = Signal(8)
        ends = _moves(o.wdone) + (_moves(o.rdata) & o.rdata.payload.last)
        # The memory answers what it was asked, a burst once.
        m.d.comb += Assume(pending >= ends)
        m.d.sync += pending.eq(pending + _moves(o.cmd) - ends)
        m.d.comb += [
            Assert(pending <= LIMIT),
            Assert(dut.pending == pending),  # an invariant
            Assert(~dut.stop | (o.rdata.ready & o.wdone.ready)),
        ]
        for name in ("rdata", "wdone"):
            i, out = getattr(dut.i, name), getattr(o, name)
            with m.If(~dut.stop):
                m.d.comb += Assert((i.valid == out.valid) & (out.ready == i.ready))
            with m.If(i.valid):
                m.d.comb += Assert(Value.cast(i.payload) == Value.cast(out.payload))
        return pending

    def _passes(self, m):
        """What moves on one side of an open gate moves on the other, unaltered."""
        dut = self.dut
        for name in ("cmd", "wdata"):
            i, o = getattr(dut.i, name), getattr(dut.o, name)
            m.d.comb += Assert(~_moves(i) | (_moves(o) & ~dut.shut))
            with m.If(~dut.shut):
                m.d.comb += Assert(_moves(i) == _moves(o))
        cmd, wdata = dut.o.cmd, dut.o.wdata
        with m.If(cmd.valid):
            m.d.comb += [
                Assert(~dut.shut),
                Assert(Value.cast(cmd.payload) == Value.cast(dut.i.cmd.payload)),
            ]
        with m.If(wdata.valid & ~dut.shut):
            m.d.comb += [
                Assert(wdata.payload.data == dut.i.wdata.payload.data),
                Assert(wdata.payload.strb == dut.i.wdata.payload.strb),
            ]
        with m.If(dut.shut & wdata.valid):
            m.d.comb += Assert(wdata.payload.strb == 0)


PROOFS = (
    Proof(
        name="memory_gate",
        quick=True,
        core="cores.roles.gate.MemoryGate(32, 1)",
        says="a requester can be reset at any time: every burst ends as it was commanded",
        module="trebuchet.cores.roles.gate",
        build=lambda cores: MemoryGateProof(cores.MemoryGate(32, 1)),
        depth=3,
        cover_depth=12,
        mutants=(
            Mutant("withdraws_command", "(~self.stop | self.cmd_held)", "~self.stop"),
            Mutant("withdraws_data", "(~self.stop | self.wdata_held)", "~self.stop"),
            Mutant("writes_garbage", "Mux(self.shut, 0, i.payload.strb)", "i.payload.strb"),
            Mutant(
                "forgets_data",
                "(self.shut & self.owing) | (i.valid & passes)",
                "0 | (i.valid & passes)",
            ),
            Mutant("two_at_once", "~full & ~(i.cmd.payload.write & self.owing)", "~full"),
            Mutant(
                "early_idle",
                "self.shut & ~self.owing & (self.pending == 0)",
                "self.shut & ~self.owing",
            ),
            Mutant("blocks_responses", "i.ready | self.stop", "i.ready"),
        ),
        assumes="the stream rules, of the requester until it is reset; a memory that answers once",
        not_proved="that the memory answers, which `idle` waits for; a reset while running",
    ),
)
