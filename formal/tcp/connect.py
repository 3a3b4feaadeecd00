"""Proof of ``ConnectPort`` in ``cores/tcp/connect.py``.

The stream rules at ``o``, given those of ``i``; items of ``i`` pass unaltered, at once, in their
order, and none is lost or doubled; a request has the addresses and the service in the registers; it
is offered if and only if one was asked for and not yet taken, after at most one item of ``i``. And
of ``state``: each of its steps has the cause that the data sheet gives, and no other.

Not proved: behaviour under a reset while running; that the engine takes what it is offered.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.tcp.connect import ConnectState

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .receive import ACTIVE

__all__ = ["PROOFS"]

S = ConnectState
CONNECT = 2  # kind of input


class ConnectProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut
        self.state = Value.cast(dut.state)  # a mutant has another class of states

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        free(m, dut.i.valid, dut.i.payload, dut.o.ready, dut.ask, dut.accepted, dut.service)
        free(m, dut.mac, dut.ip, dut.port, dut.local, dut.made, dut.opened, dut.closed, dut.over)
        stream_rules(m, dut.i, Assume, "i")
        stream_rules(m, dut.o, Assert, "o")
        self._still(m)
        self._passes(m)
        self._steps(m)
        return m

    def _still(self, m):
        """Software leaves the registers alone while it waits."""
        dut = self.dut
        waits = Signal()
        m.d.sync += waits.eq(self.state == S.ASKED.value)
        for name in ("mac", "ip", "port", "local", "service"):
            value = getattr(dut, name)
            past = Signal(len(value), name=f"past_{name}")
            m.d.sync += past.eq(value)
            m.d.comb += Assume(~waits | (value == past))

    def _passes(self, m):
        dut, i, o = self.dut, self.dut.i, self.dut.o
        p = o.payload
        asked = self.state == S.ASKED.value
        taken = i.valid & i.ready
        m.d.comb += [
            Assert(taken == (o.valid & o.ready & ~dut.own)),
            Assert(~o.valid | dut.own | i.valid),
            Assert(~i.valid | o.valid),
            Assert(~dut.own | (o.valid & asked)),
        ]
        with m.If(o.valid & ~dut.own):
            m.d.comb += Assert(p.as_value() == i.payload.as_value())
        with m.If(dut.own):
            meant = {"mac": dut.mac, "ip": dut.ip, "remote_port": dut.port}
            meant |= {"local_port": dut.local}
            request, whole = p.body.connect, p.body.segment
            m.d.comb += Assert(Value.cast(p.kind) == CONNECT)
            m.d.comb += Assert(request.service == dut.service)
            m.d.comb += [Assert(request[name] == value) for name, value in meant.items()]
            # Read as a segment it has no flags and no text.
            meant["ack"] = dut.service
            for name in whole.shape().members:
                m.d.comb += Assert(Value.cast(whole[name]) == meant.get(name, 0))
        # Two cycles without a wait are enough; a segment that waits is offered first.
        stuck = Signal(2)
        waits = asked & ~dut.own & ~(i.valid & ~i.ready)
        m.d.sync += stuck.eq(Mux(waits, stuck + 1, 0))
        m.d.comb += Assert(stuck <= 1)

    def _steps(self, m):
        dut, state = self.dut, self.state
        past, session = Signal(3), Signal.like(dut.session)
        ask, requested, accepted, opened, closed = (Signal(name=f"was_{n}") for n in "ratoc")
        made = Signal.like(dut.made)
        first = Signal(init=1)
        m.d.sync += [
            first.eq(0),
            past.eq(state),
            session.eq(dut.session),
            ask.eq(dut.ask),
            requested.eq(dut.own & dut.o.ready),
            accepted.eq(dut.accepted),
            opened.eq(dut.opened & (dut.made == dut.session)),
            closed.eq(dut.closed & (dut.over == dut.session)),
            made.eq(dut.made),
        ]
        expected = Signal(3)
        m.d.comb += expected.eq(past)
        with m.Switch(past):
            with m.Case(S.ASKED.value):
                with m.If(requested):
                    m.d.comb += expected.eq(Mux(accepted, S.OPENING.value, S.REFUSED.value))
            with m.Case(S.OPENING.value, S.OPEN.value):
                with m.If(closed):
                    m.d.comb += expected.eq(S.CLOSED.value)
                with m.Elif(opened):
                    m.d.comb += expected.eq(S.OPEN.value)
            with m.Default():
                with m.If(ask):
                    m.d.comb += expected.eq(S.ASKED.value)
        with m.If(first):
            m.d.comb += Assert(state == S.IDLE.value)
        with m.Else():
            m.d.comb += Assert(state == expected)
            m.d.comb += Assert(state <= S.CLOSED.value)
            m.d.comb += Assert(dut.session == Mux(requested, made, session))
        rounds = Signal(2)
        m.d.sync += rounds.eq(rounds + (closed & (past == S.OPEN.value) & ~rounds.all()))
        m.d.comb += [
            Cover(rounds == 2),
            Cover((past == S.OPENING.value) & (state == S.CLOSED.value)),
        ]
        m.d.comb += Cover((past == S.ASKED.value) & (state == S.REFUSED.value) & self.dut.i.valid)


PROOFS = (
    Proof(
        name="tcp_connect",
        core="cores.tcp.connect.ConnectPort",
        says="segments pass unaltered; one request for each that software asks; what becomes of it",
        module="trebuchet.cores.tcp.connect",
        build=lambda cores: ConnectProof(cores.ConnectPort(ACTIVE)),
        depth=3,
        cover_depth=16,
        mutants=(
            Mutant("breaks_in", "with m.If(~own & between):", "with m.If(~own):"),
            Mutant(
                "asks_for_ever",
                "own.eq(0), self.session.eq(self.made)",
                "own.eq(1), self.session.eq(self.made)",
            ),
            Mutant("loses_one", "self.i.ready.eq(o.ready & ~own)", "self.i.ready.eq(o.ready)"),
            Mutant("always_opens", "with m.If(self.accepted):", "with m.If(1):"),
            Mutant("follows_all", "self.opened & (self.made == self.session)", "self.opened"),
            Mutant("other_port", "request.remote_port.eq(self.port)", "request.remote_port.eq(0)"),
        ),
        assumes="the registers stand still while the state is ASKED",
    ),
)
