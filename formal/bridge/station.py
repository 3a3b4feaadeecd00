"""Proofs of the board as a station on a bridge's wire: ``cores/bridge/listener.py``, ``sender.py``
and ``station.py``.

``TapListener``, by induction, its store hollow, for any frames and at any pace of the tap: each
beat that is shown goes to the store once, as it is; a frame's last one without ``error`` exactly
if the frame came without and is for the station, or for a group; the tap is told to drop the beat
in which the destination ends exactly if that is the station's address; ``source`` is that of the
last frame which had a usable one; ``lost`` says when the store had no room for a frame for the
station.

``PortSender``, by induction: every beat leaves once by each port of its frame, in order, as it is,
and by no other; the ports are those that its first six bytes say.

``BridgeStation``, its parts hollow: they are joined so that those proofs and the bridge's compose.

Not proved: other data paths than 32 bits; addresses that change while a frame is under way;
behaviour under a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ..kit.parts import hollow, moves, same
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .bridge import free_inputs, same_registers, same_tap

__all__ = ["PROOFS"]


class ListenerProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        store, tap = hollow(dut.store), dut.tap
        free(m, tap.valid, tap.step, tap.beat, dut.o.ready)
        same(m, store.o, dut.o)
        beat, take = tap.beat, Signal()
        m.d.comb += [
            dut.mac.eq(AnyConst(48)),
            take.eq(tap.valid & tap.step),
            Assume(beat.last | ~beat.error),
        ]
        # The model: the frame's first bytes, as they came; `nth` beats came before.
        nth, head = Signal(3), Signal(96)
        now = Signal(96)
        m.d.comb += now.eq(head)
        for k in range(3):
            with m.If(nth == k):
                m.d.comb += now[32 * k : 32 * k + 32].eq(beat.data)
        with m.If(take):
            m.d.sync += [head.eq(now), nth.eq(Mux(beat.last, 0, Mux(nth == 3, 3, nth + 1)))]
        self._judged(m, take, beat, nth, now)
        self._learned(m, take, beat, nth, head, now)
        # Invariants.
        ours = head[:48] == dut.mac
        m.d.comb += [
            Assert(dut.index == nth),
            Assert(nth <= 3),
            Assert((nth != 1) | (dut.miss == (head[:32] != dut.mac[:32]))),
            Assert((nth == 0) | (dut.group == head[0])),
            Assert(dut.wanted == ((nth >= 2) & (ours | head[0]))),
            Assert((nth != 0) | ~dut.miss),
            Assert((nth < 2) | (dut.seen[:16] == head[48:64])),
            Assert((nth < 3) | (dut.seen == head[48:])),
        ]
        return m

    def _judged(self, m, take, beat, nth, now):
        dut, put = self.dut, self.dut.store.i
        good, drop, ends = Signal(), Signal(), Signal()
        plain, stored = Signal(beat.shape()), Signal(beat.shape())
        m.d.comb += [
            good.eq((nth >= 2) & ((now[:48] == dut.mac) | now[0]) & ~beat.error),
            plain.eq(beat),
            plain.error.eq(beat.last & ~good),
            stored.eq(put.p),
            Assert(put.valid == take),
            Assert(~take | (Value.cast(stored) == Value.cast(plain))),
            Assert(dut.tap.drop == drop),
            Assert(~dut.tap.alter),
            Assert(dut.lost == (dut.store.dropped_overflow & ends)),
            Assert(dut.ours == ends),  # an invariant
        ]
        with m.If(dut.tap.step):
            m.d.sync += drop.eq(dut.tap.valid & (nth == 1) & (now[:48] == dut.mac))
        with m.If(take & beat.last):
            m.d.sync += ends.eq(good)
        m.d.comb += [
            Cover(take & beat.last & good & (nth == 3) & ~now[0]),
            Cover(take & beat.last & good & now[0]),
            Cover(drop),
            Cover(dut.lost),
        ]

    def _learned(self, m, take, beat, nth, head, now):
        dut, source = self.dut, Signal(48)
        with m.If(take & beat.last & ~beat.error & (nth == 3) & ~head[48]):
            m.d.sync += source.eq(head[48:])
        m.d.comb += [Assert(dut.source == source), Cover(source.any() & (now[48:] != source))]


class SenderProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        i, ports = dut.i, [dut.o[0], dut.o[1]]
        free(m, i.valid, i.payload, *(port.ready for port in ports))
        m.d.comb += dut.host.eq(AnyConst(48))
        begins_in = stream_rules(m, i, Assume, "i")
        begins = [stream_rules(m, port, Assert, f"o{k}") for k, port in enumerate(ports)]
        # The model: the beat that came last, and the ports that have had it.
        held, holds, had, route = Signal(i.p.shape()), Signal(), Signal(2), Signal(2)
        sent, should = Signal(2), Signal(2)
        m.d.comb += sent.eq(Cat(moves(port) for port in ports))
        with m.If(held.first):
            m.d.comb += should.eq(self._ports(held, i.p))
        with m.Else():
            m.d.comb += should.eq(route)
        ended = (had | sent) == should
        known = i.valid | held.last | ~held.first
        with m.If(moves(i)):
            m.d.sync += [holds.eq(1), held.eq(i.p), had.eq(0), route.eq(should)]
            m.d.comb += Assert(~holds | ended)
        with m.Elif(i.ready):
            m.d.sync += holds.eq(0)
            m.d.comb += Assert(~holds | (known & ended))
        with m.Else():
            m.d.sync += had.eq(had | sent)
        for k, port in enumerate(ports):
            m.d.comb += Assert(
                ~port.valid | (holds & known & should[k] & ~had[k] & self._same(port.p, held))
            )
        self._progress(m, i, ports, holds, known)
        self._invariants(m, holds, held, known, had, should)
        self._places(m, begins_in, begins, holds, held, had, should, route)
        m.d.comb += [
            Cover(moves(i) & ~held.first & (should == bits) & holds) for bits in (0b01, 0b10, 0b11)
        ]
        return m

    @staticmethod
    def _same(one, other):
        return Value.cast(one) == Value.cast(other)

    def _ports(self, first, second):
        """By the first six bytes of a frame; of a single beat only four are known."""
        address = Cat(first.data, second.data)[:48]
        lone = Mux((address == self.dut.host) & ~first.last, 0b10, 0b01)
        return Mux(first.data[0], 0b11, lone)

    def _progress(self, m, i, ports, holds, known):
        """A beat whose ports are known is offered a cycle later at the latest."""
        waited = Signal()
        offered = ports[0].valid | ports[1].valid
        m.d.sync += waited.eq(holds & known & ~offered & ~moves(i))
        with m.If(waited):
            m.d.comb += Assert(offered)

    def _invariants(self, m, holds, held, known, had, should):
        dut = self.dut
        decided = holds & ~dut.undecided
        m.d.comb += [
            Assert(dut.holds == holds),
            Assert(~holds | self._same(dut.held, held)),
            Assert(~dut.undecided | (holds & held.first & (had == 0))),
            Assert(dut.owed == Mux(decided, should & ~had, 0)),
            Assert(~decided | (known & (dut.route == should) & ((had & ~should) == 0))),
            Assert(~decided | (dut.owed != 0)),
        ]

    def _places(self, m, begins_in, begins, holds, held, had, should, route):
        """Invariants: where in a frame the input and each port are."""
        inside = ~holds & ~begins_in
        m.d.comb += [
            Assert(~holds | (begins_in == held.last)),
            Assert(~holds | held.last | ((held.empty == 0) & ~held.error)),
            Assert(~inside | (~held.first & (self.dut.route == route) & route.any())),
        ]
        for k, begin in enumerate(begins):
            within = Mux(had[k], held.last, held.first | ~should[k])
            m.d.comb += Assert(begin == Mux(holds, within, begins_in | ~route[k]))


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
        name="bridge_listener",
        quick=True,
        core="cores.bridge.listener.TapListener(32), its store hollow",
        says="a station gets its frames and group frames, whole; its own it takes off the wire",
        module="trebuchet.cores.bridge.listener",
        build=lambda cores: ListenerProof(cores.TapListener(32)),
        depth=2,
        cover_depth=8,
        mutants=(
            Mutant("hears_everything", "(beat.error | ~self.wanted)", "beat.error"),
            Mutant("takes_the_damaged", "(beat.error | ~self.wanted)", "~self.wanted"),
            Mutant("drops_groups", "tap.drop.eq(settled & ~missed)", "tap.drop.eq(settled)"),
            Mutant("no_groups", "self.wanted.eq(~missed | group)", "self.wanted.eq(~missed)"),
            Mutant(
                "half_an_address",
                "wrong if end == 0 else self.miss | wrong",
                "wrong if end == 0 else wrong",
            ),
            Mutant("learns_groups", "m.If(good & ~seen[0])", "m.If(good)"),
            Mutant(
                "learns_the_damaged",
                "beat.last & ~beat.error & (self.index == self.beats)",
                "beat.last & (self.index == self.beats)",
            ),
            Mutant(
                "counts_the_others", "store.dropped_overflow & self.ours", "store.dropped_overflow"
            ),
            Mutant("in_its_own_time", "with m.If(tap.step):", "with m.If(1):"),
        ),
        assumes="a beat that is not a last one has no error; the address is constant",
        not_proved="the store, which is proved by packet_fifo_drops; a reset while running",
    ),
    Proof(
        name="bridge_sender",
        quick=True,
        core="cores.bridge.sender.PortSender(32)",
        says="a frame leaves once by each port of its destination, in order, and by no other",
        module="trebuchet.cores.bridge.sender",
        build=lambda cores: SenderProof(cores.PortSender(32)),
        depth=2,
        cover_depth=10,
        mutants=(
            Mutant("groups_to_the_host", "choice.eq(0b11)", "choice.eq(0b10)"),
            Mutant(
                "all_to_the_network",
                "(bits == self.host) & whole, 0b10, 0b01",
                "(bits == self.host) & whole, 0b01, 0b01",
            ),
            Mutant("does_not_wait", "~(owed & ~ready).any()", "(ready | ~owed).any()"),
            Mutant("twice", "owed.eq(owed & ~ready)", "owed.eq(owed)"),
            Mutant("too_soon", "with m.If(i.valid | held.last):", "with m.If(1):"),
            Mutant(
                "forgets_its_route",
                "i.valid & ~i.p.first, route, 0",
                "i.valid & ~i.p.first, 0b01, 0",
            ),
        ),
        assumes="the stream rules on the input; the host's address is constant",
    ),
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
