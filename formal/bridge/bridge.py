"""Proofs of ``BridgeLane`` and ``Bridge`` in ``cores/bridge/bridge.py``: what lies between parts.

A lane is cut at its streams, and each piece is proved for ever by itself. With the pieces hollow
(:mod:`~trebuchet.formal.kit.parts`), so for any pieces, it is proved here that what one offers is
what the next is offered, and nothing else is: ``rx`` the tap, the tap the store, the store input 0
of the multiplexer, ``inject`` the injector, the injector input 1, the multiplexer ``tx``. So the
proofs of the pieces compose, as each asserts of its output what the next assumes of its input:

- ``bridge_tap``: what leaves the tap is, beat by beat, what came to it less what the role dropped,
  whole frames within the stream rules;
- ``stream_fifo_*`` (cut-through) and ``packet_fifo_waits`` (store-and-forward): it leaves the store
  once, in order, unaltered; in store-and-forward without those that end with an error mark;
- ``bridge_inject``: the role's good frames, and they only, reach input 1, whole;
- ``bridge_mux``: what leaves is what the inputs offer, packet by packet, never interleaved, and
  nobody starves; ``bridge_mux_share``: each gets half.

Hence every frame that no role drops leaves once, unaltered, in order, between whole frames of the
role. A role cannot stall the line: ``rx`` waits for the tap only, the tap for the store only
(``bridge_tap``), the store for ``tx`` and a bounded number of the role's beats (``bridge_mux``).

Of the bridge: its lanes are joined crosswise, and its registers count what they should.

Not proved: the pieces, here; behaviour under a reset while running.
"""

from amaranth.hdl import Assert, C, Cover, Elaboratable, Signal, Value
from amaranth.lib.wiring import In
from trebuchet.cores.buffers import PacketFifo, StreamFifo

from ..kit.parts import Opened, hollow, moves, same
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]

MODULE = "trebuchet.cores.bridge.bridge"
#: Strobes of a direction, in the order of its counters, which are named after them.
STROBES = (
    *("passed", "altered", "dropped", "damaged", "runt", "oversize"),
    *("injected", "refused"),
)


def same_tap(m, producer, consumer):
    """The role's view: ``producer`` is the tap's side, ``consumer`` the outer one."""
    m.d.comb += [
        Assert(consumer.step == producer.step),
        Assert(consumer.valid == producer.valid),
        Assert(Value.cast(consumer.beat) == Value.cast(producer.beat)),
        Assert(producer.drop == consumer.drop),
        Assert(producer.alter == consumer.alter),
        Assert(producer.data == consumer.data),
    ]


def same_registers(m, ours, theirs):
    """Two ports with registers are one: ``ours`` is the outer one, ``theirs`` a part's."""
    for name in theirs.signature.members:
        m.d.comb += [
            Assert(getattr(ours, name) == getattr(theirs, name)),
            Cover(getattr(theirs, name) != 0),
        ]


def free_inputs(m, dut):
    for _, member, port in dut.signature.flatten(dut):
        if member.flow is In:
            free(m, port)


class LaneProof(Elaboratable):
    def __init__(self, cores, dut, longest):
        self.cores, self.dut, self.longest = cores, dut, longest

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        engine = dut.engine
        for part in (dut.frame_tap, dut.injector, dut.mux, *((engine,) if engine else ())):
            hollow(part)
        m.submodules.dut = Opened(
            self.cores, dut, platform, hollowed=("StreamFifo", "PacketFifo")
        ).fragment
        free_inputs(m, dut)
        tap, store, injector, mux = dut.frame_tap, dut.store, dut.injector, dut.mux
        for producer, consumer in (
            (dut.rx, tap.i),
            (tap.o, store.i),
            *(((store.o, engine.i), (engine.o, mux.i[0])) if engine else ((store.o, mux.i[0]),)),
            (dut.inject, injector.i),
            (injector.o, mux.i[1]),
            (mux.o, dut.tx),
        ):
            same(m, producer, consumer)
            m.d.comb += Cover(moves(producer))
        same_tap(m, tap.tap, dut.tap)
        if engine:
            same_registers(m, dut.csr, engine.csr)
            m.d.comb += Assert(engine.enable == dut.enable)
        m.d.comb += [
            Assert(tap.enable == dut.enable),
            Assert(injector.enable == dut.enable),
            Assert(Value.cast(dut.events) == Value.cast(tap.events)),
            Assert(Value.cast(dut.injects) == Value.cast(injector.events)),
        ]
        # The sizes and kinds of the pieces, in beats of 4 bytes. Cut-through has the default depth.
        beats = -(-self.longest // 4)
        kind = PacketFifo if dut.store_and_forward else StreamFifo
        m.d.comb += [
            Assert(C(isinstance(store, kind))),
            Assert(C(store.depth, 16) == dut.depth),
            Assert(C(dut.depth, 16) >= (beats if dut.store_and_forward else 2 * beats)),
            Assert(C(mux.quantum, 16) == beats),
            Assert(C(tap.latency, 16) == 2),
        ]
        if dut.store_and_forward:
            m.d.comb += Assert(C(not store.drop_when_full))
        for bounds in (tap.bounds, injector.bounds):
            m.d.comb += Assert(C(bounds.longest, 16) == self.longest)
            m.d.comb += Assert(C(bounds.shortest, 16) == 6)
        return m


class BridgeProof(Elaboratable):
    """``counted``: that each counter counts is covered, too."""

    def __init__(self, dut, counted=True):
        self.dut, self.counted = dut, counted

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        for lane in dut.lanes:
            hollow(lane)
        free_inputs(m, dut)
        for d, (direction, lane) in enumerate(zip(("inbound", "outbound"), dut.lanes, strict=True)):
            same(m, dut.rx[d], lane.rx)
            same(m, lane.tx, dut.tx[1 - d])
            same_tap(m, lane.tap, dut.tap[d])
            same(m, dut.inject[d], lane.inject)
            m.d.comb += Assert(lane.enable == dut.csr.enable)
            if lane.engine is not None:
                same_registers(m, getattr(dut, f"csr_{direction}"), lane.csr)
            for name in STROBES:
                strobe = getattr(lane.injects if name in STROBES[6:] else lane.events, name)
                # Two cycles later, of which one is a register's.
                late = Signal(name=f"{direction}_{name}_late")
                count = Signal(32, name=f"{direction}_{name}_count")
                m.d.sync += [late.eq(strobe), count.eq(count + late)]
                m.d.comb += Assert(getattr(dut.csr, f"{direction}_{name}") == count)
                if self.counted:
                    m.d.comb += Cover(count == 2)
        return m


LANE_MUTANTS = (
    Mutant(
        "role_has_no_say",
        "tap.enable.eq(self.enable), injector.enable.eq(self.enable)",
        "tap.enable.eq(0), injector.enable.eq(self.enable)",
    ),
    Mutant(
        "injects_in_bypass",
        "tap.enable.eq(self.enable), injector.enable.eq(self.enable)",
        "tap.enable.eq(self.enable), injector.enable.eq(1)",
    ),
    Mutant("half_a_quantum", "FairMux(width, beats)", "FairMux(width, beats // 2)"),
    Mutant("half_a_store", "2 << beats.bit_length()", "1 << beats.bit_length()"),
    Mutant("drops_when_full", "drop_when_full=False", "drop_when_full=True"),
    Mutant(
        "other_lengths",
        "Injector(width, least, longest)",
        "Injector(width, least + 1, longest)",
    ),
)
BRIDGE_MUTANTS = (
    Mutant(
        "sends_back",
        "lane.tx, wiring.flipped(self.tx[1 - d])",
        "lane.tx, wiring.flipped(self.tx[d])",
    ),
    Mutant("never_in_bypass", "lane.enable.eq(self.csr.enable)", "lane.enable.eq(1)"),
    Mutant("counts_each_cycle", "count.eq(count + strobe)", "count.eq(count + 1)"),
    Mutant(
        "other_roles_frames",
        "wiring.flipped(self.inject[d]), lane.inject",
        "wiring.flipped(self.inject[1 - d]), lane.inject",
    ),
)

PROOFS = (
    *(
        Proof(
            name=f"bridge_lane_{name}",
            core=f"cores.bridge.bridge.BridgeLane(32, {name}), its pieces hollow",
            says="a lane is tap, store, injector and multiplexer, joined so that proofs compose",
            module=MODULE,
            build=lambda cores, store=store, depth=depth: LaneProof(
                cores,
                cores.BridgeLane(
                    32, store_and_forward=store, latency=2, shortest=6, longest=19, depth=depth
                ),
                19,
            ),
            depth=1,
            cover_depth=4,
            mutants=tuple(mutant for mutant in LANE_MUTANTS if mutant.name in caught),
            assumes="nothing; what the pieces assume is what the pieces before them assert",
            not_proved="the pieces, which have proofs of their own; a reset while running",
        )
        for name, store, depth, caught in (
            (
                "cut_through",
                False,
                None,
                ("role_has_no_say", "injects_in_bypass", "half_a_quantum", "half_a_store"),
            ),
            ("store_and_forward", True, 8, ("role_has_no_say", "drops_when_full", "other_lengths")),
        )
    ),
    Proof(
        name="bridge_directions",
        core="cores.bridge.bridge.Bridge(32), its lanes hollow",
        says="each direction is a lane from one port to the other, counted in its own registers",
        module=MODULE,
        build=lambda cores: BridgeProof(cores.Bridge(32)),
        depth=3,
        cover_depth=6,
        mutants=BRIDGE_MUTANTS,
        assumes="nothing",
        not_proved="the lanes, which have proofs of their own; a reset while running",
    ),
)
