"""Proofs of an engine in-line in the bridge: ``InlineEngine`` in ``cores/bridge/inline.py``, and
of the lane, the bridge and the station around it.

``InlineEngine``, its parts hollow, so for any: what comes in is what its stage is offered, what the
stage gives is what the exit is offered, and what the exit gives is what goes out; so these proofs
compose:

- ``engine_stage_any_body``: whatever the body is, one packet leaves the stage for each, by the
  rules;
- ``bridge_inject``: of these the good ones leave, whole, once, and no other;
- ``bridge_lane_engine``: the engine lies between the store and the multiplexer, and nothing else
  of the lane is joined to it: so frames of a role never wait for a body;
- ``bridge_engines``, ``bridge_station_engines``: registers reach the engine of their direction.

The directions of a bridge share nothing (``bridge_directions``, and ``bridge_engines`` with
engines), so none waits for the other's body.

Not proved: the pieces, here; that a body ends a frame; behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Cover, Elaboratable, Signal
from trebuchet.cores.roles.loopback.role import Wire

from ..engines.stage import AnyBody
from ..kit.parts import hollow, moves, same
from ..kit.proof import Mutant, Proof
from ..stream import new_harness
from .bridge import BridgeProof, LaneProof, free_inputs, same_registers
from .station import StationProof

__all__ = ["PROOFS"]


class InlineProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        stage, gate = hollow(dut.stage), hollow(dut.exit)
        free_inputs(m, dut)
        for producer, consumer in ((dut.i, stage.i), (stage.o, gate.i), (gate.o, dut.o)):
            same(m, producer, consumer)
            m.d.comb += Cover(moves(producer))
        same_registers(m, dut.csr, stage.csr)
        count = Signal(32)
        m.d.sync += count.eq(count + gate.events.refused)
        m.d.comb += [
            Assert(stage.enable == dut.enable),
            Assert(gate.enable),
            Assert(stage.extras["refused"] == count),
            Cover(count == 2),
        ]
        return m


def _proof(name, core, says, module, build, mutants, depth=2):
    return Proof(
        name=name,
        core=f"cores.bridge.{core}",
        says=says,
        module=f"trebuchet.cores.bridge.{module}",
        build=build,
        depth=depth,
        cover_depth=6,
        mutants=mutants,
        assumes="nothing; what the pieces assume is what the pieces before them assert",
        not_proved="the pieces, which have proofs of their own; a reset while running",
    )


def _lane(cores):
    lane = cores.BridgeLane(
        *(32,),
        store_and_forward=True,
        latency=2,
        shortest=6,
        longest=19,
        depth=8,
        engine=("any", AnyBody()),
    )
    return LaneProof(cores, lane, 19)


PROOFS = (
    _proof(
        "bridge_inline",
        "inline.InlineEngine(any body, 32), its pieces hollow",
        "frames go through the body, and only good ones from there on",
        "inline",
        lambda cores: InlineProof(cores.InlineEngine(AnyBody(), 32, shortest=6, longest=19)),
        (
            Mutant("shut", "gate.enable.eq(1)", "gate.enable.eq(self.enable)"),
            Mutant("counts_all", "refused + gate.events.refused", "refused + gate.events.injected"),
            Mutant("always_on", "stage.enable.eq(self.enable)", "stage.enable.eq(1)"),
        ),
    ),
    _proof(
        "bridge_lane_engine",
        "bridge.BridgeLane(32, store_and_forward, with an engine), its pieces hollow",
        "the engine lies between store and multiplexer; frames of a role are none of its business",
        "bridge",
        _lane,
        (
            Mutant(
                "never_by",
                "m.d.comb += engine.enable.eq(self.enable)",
                "m.d.comb += engine.enable.eq(1)",
            ),
            Mutant(
                "of_the_role",
                "connect(m, store.o, engine.i)\nconnect(m, engine.o, mux.i[0])",
                "connect(m, injector.o, engine.i)\nconnect(m, engine.o, mux.i[0])",
                context="m.submodules.injector = injector = self.injector",
            ),
        ),
    ),
    _proof(
        "bridge_engines",
        "bridge.Bridge(32, engines both ways), its lanes hollow",
        "each engine's registers are those of its direction; the directions share nothing",
        "bridge",
        lambda cores: BridgeProof(
            cores.Bridge(32, engines={"inbound": ("a", AnyBody()), "outbound": ("b", Wire(32))}),
            counted=False,
        ),
        (
            Mutant(
                "always_the_key_of_nobody",
                "wiring.connect(m, wiring.flipped(registers), lane.csr)",
                "pass",
            ),
        ),
        depth=3,
    ),
    _proof(
        "bridge_station_engines",
        "station.BridgeStation(32, engines both ways), its parts hollow",
        "the station hands on the engines' registers",
        "station",
        lambda cores: StationProof(
            cores.BridgeStation(
                32, engines={"inbound": ("a", AnyBody()), "outbound": ("b", Wire(32))}
            )
        ),
        (
            Mutant(
                "keeps_them",
                "connect(m, outside(getattr(self, name)), getattr(bridge, name))",
                "pass",
            ),
        ),
        depth=3,
    ),
)
