"""Proof of the board as a station on a bridge's wire, ``cores/bridge/station.py``.

``BridgeStation``, its parts hollow: they are joined so that the proofs of listener, sender and
bridge compose.

Not proved: other data paths than 32 bits; behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Cover, Elaboratable, Signal

from ..kit.parts import hollow, moves, same
from ..kit.proof import Mutant, Proof
from ..stream import new_harness
from .bridge import free_inputs, same_registers, same_tap

__all__ = ["PROOFS"]


class StationProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        bridge, sender, merge = dut.bridge, dut.sender, dut.merge
        for part in (bridge, sender, merge, *dut.listeners):
            hollow(part)
        free_inputs(m, dut)
        for producer, consumer in (
            (dut.network_rx, bridge.rx[0]),
            (dut.host_rx, bridge.rx[1]),
            (bridge.tx[0], dut.network_tx),
            (bridge.tx[1], dut.host_tx),
            (dut.tx, sender.i),
            # Direction 1 leads to port 0, the network's.
            (sender.o[0], bridge.inject[1]),
            (sender.o[1], bridge.inject[0]),
            (dut.listeners[0].o, merge.i[0]),
            (dut.listeners[1].o, merge.i[1]),
            (merge.o, dut.rx),
        ):
            same(m, producer, consumer)
            m.d.comb += Cover(moves(producer))
        host = dut.listeners[1].source
        m.d.comb += [
            Assert(bridge.csr.enable == dut.csr.enable),
            Assert(sender.host == host),
            Assert(dut.csr_station.host_mac == host),
        ]
        for d, (direction, listener) in enumerate(
            zip(("inbound", "outbound"), dut.listeners, strict=True)
        ):
            same_tap(m, bridge.tap[d], listener.tap)
            count = Signal(32, name=f"{direction}_count")
            m.d.sync += count.eq(count + listener.lost)
            m.d.comb += [
                Assert(listener.mac == dut.mac),
                Assert(getattr(dut.csr_station, f"{direction}_lost") == count),
            ]
        for register in dut.signature.members["csr"].signature.block.registers:
            if register.access == "ro":
                ours = getattr(dut.csr, register.name)
                m.d.comb += Assert(ours == getattr(bridge.csr, register.name))
        for name in bridge.engine_blocks:
            same_registers(m, getattr(dut, name), getattr(bridge, name))
        return m


PROOFS = (
    Proof(
        name="bridge_station",
        core="cores.bridge.station.BridgeStation(32), its parts hollow",
        says="bridge, listeners and sender are joined so that their proofs compose",
        module="trebuchet.cores.bridge.station",
        build=lambda cores: StationProof(cores.BridgeStation(32)),
        depth=3,
        cover_depth=4,
        mutants=(
            Mutant("ports_swapped", "bridge.inject[1 - port]", "bridge.inject[port]"),
            Mutant("learns_the_network", "self.listeners[1].source", "self.listeners[0].source"),
            Mutant(
                "never_off",
                'theirs.eq(ours) if register.access == "rw" else ours.eq(theirs)',
                'theirs.eq(1) if register.access == "rw" else ours.eq(theirs)',
            ),
            Mutant("counts_each_cycle", "count + listener.lost", "count + 1"),
        ),
        assumes="nothing",
        not_proved="the parts, which have proofs of their own; a reset while running",
    ),
)
