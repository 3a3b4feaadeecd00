"""Proof of ``ServiceMerge`` in ``cores/services/merge.py``: three ports.

Each event of a port leaves once, unaltered, with the port's number, which stays until it is taken;
a descriptor, or what is freed, goes to the port that is named, once, and to no other.

Not proved: that an event's turn comes (``stream_arbiter``).
"""

from amaranth.hdl import Array, Assert, Assume, Cover, Elaboratable, Signal, Value

from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

N = 3


class ServiceMergeProof(Elaboratable):
    def __init__(self, cores):
        self.dut = cores.ServiceMerge(N)

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        service, ports = dut.service, [dut.ports[k] for k in range(N)]
        free(m, service.event.ready, dut.to, service.tx.valid, service.tx.payload)
        free(m, service.free.valid, service.free.payload)
        m.d.comb += Assume(dut.to < N)
        for k, port in enumerate(ports):
            free(m, port.event.valid, port.event.payload, port.tx.ready, port.free.ready)
            stream_rules(m, port.event, Assume, f"event{k}")
        stream_rules(m, service.event, Assert, "event")
        event, origin = service.event, dut.origin
        valids, readies = (Array(getattr(p.event, n) for p in ports) for n in ("valid", "ready"))
        payloads = Array(Value.cast(port.event.payload) for port in ports)
        m.d.comb += [
            Assert(origin < N),
            Assert(event.valid == valids[origin]),
            Assert(~event.valid | (Value.cast(event.payload) == payloads[origin])),
            Assert(sum(moves(port.event) for port in ports) == moves(event)),
            Assert(~moves(event) | (readies[origin] & valids[origin])),
        ]
        held = self._past(m, event.valid & ~event.ready)
        m.d.comb += Assert(~held | (origin == self._past(m, origin)))
        for name in ("tx", "free"):
            ours = getattr(service, name)
            for k, port in enumerate(ports):
                theirs = getattr(port, name)
                m.d.comb += Assert(theirs.valid == (ours.valid & (dut.to == k)))
                same = Value.cast(theirs.payload) == Value.cast(ours.payload)
                m.d.comb += Assert(~theirs.valid | same)
                m.d.comb += Assert((dut.to != k) | (ours.ready == theirs.ready))
        m.d.comb += Cover(moves(event) & (origin == 2) & moves(service.tx) & moves(service.free))
        return m

    @staticmethod
    def _past(m, value):
        past = Signal.like(Value.cast(value))
        m.d.sync += past.eq(value)
        return past


PROOFS = (
    Proof(
        name="service_merge",
        core="cores.services.merge.ServiceMerge(3 ports)",
        says="each event leaves once, with its port's number; tx and free go to the port named",
        module="trebuchet.cores.services.merge",
        build=ServiceMergeProof,
        depth=2,
        cover_depth=6,
        mutants=(
            Mutant(
                "wrong_port",
                "tx.select.eq(self.to), free.select.eq(self.to)",
                "tx.select.eq(self.to), free.select.eq(0)",
            ),
            Mutant("no_origin", "self.origin.eq(events.index)", "self.origin.eq(0)"),
            Mutant("deaf", "source.ready.eq(sink.ready)", "source.ready.eq(1)"),
        ),
        assumes="the stream rules of the engine; a number that there is",
        not_proved="that an event's turn comes",
    ),
)
