"""A station's ear at a tap: takes the frames that are for it, and learns who sends."""

from amaranth import Module, Signal
from amaranth.hdl import Cat
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..buffers import PacketFifo
from ..stream import PacketSignature, check_data_width
from .tap import TapSignature

__all__ = ["ADDRESS_BYTES", "TapListener"]

#: Destination and source address, the beginning of each frame.
ADDRESS_BYTES = 12
#: Bytes of frames that wait.
_ROOM = 2048


class TapListener(wiring.Component):
    """Takes a station's frames off one direction of a bridge.

    ===========  ====  ==============  ============================================================
    member       dir   shape           meaning
    ===========  ====  ==============  ============================================================
    ``tap``      In    TapSignature    of a tap whose ``latency`` is 1
    ``mac``      In    48              the station's address, first byte on the wire in bits 7..0
    ``o``        Out   packet stream   frames for the station, whole; ``error`` is always 0
    ``source``   Out   48              source address of the last frame that had a usable one; 0
                                       before the first
    ``lost``     Out   1               for one cycle: a frame for the station found no room
    ===========  ====  ==============  ============================================================

    *To* ``mac``: the frame comes out of ``o``, and the tap is told to drop it. *To a group
    address*: it comes out of ``o``, and passes. *Any other*: it passes. A frame that came with
    ``error`` never comes out of ``o``, and neither does one of so few beats that its last is that
    in which the destination ends. Lengths are not judged. ``alter`` is always 0.

    A source address is usable if it is no group's, and the frame came without ``error`` and has
    beats behind those with its addresses.

    *A tap cannot wait*: a frame for which there is no room is lost whole, whatever its
    destination; ``lost`` tells so, the cycle after its last beat. *Latency*: 3 cycles from the last
    beat to the first out. *Throughput*: one beat a cycle. ``mac`` may change at any time; of a
    frame under way it decides nothing for certain. *Reset*: empty, ``source`` 0; the first beat
    after it must begin a frame.

    Parameters
    ----------
    width : int
        Data path in bits.
    depth : int or None
        Beats of frames that wait, a power of two; by default 2 KiB.
    """

    #: Steps of the tap until the verdict comes.
    LATENCY = 1

    def __init__(self, width=32, depth=None):
        self.width = check_data_width(width)
        self.depth = 8 * _ROOM // width if depth is None else depth
        super().__init__(
            {
                "tap": In(TapSignature(width)),
                "mac": In(48),
                "o": Out(PacketSignature(width)),
                "source": Out(48),
                "lost": Out(1),
            }
        )
        # No ports: for the proof's invariants.
        self.store = PacketFifo(width, self.depth)
        self.beats = -(-ADDRESS_BYTES * 8 // width)  # with addresses
        self.index = Signal(range(self.beats + 1))  # beats before this one, saturating
        self.miss, self.group, self.wanted = Signal(), Signal(), Signal()
        self.seen = Signal(48)  # source address of the frame under way
        self.ours = Signal()  # the last frame was for the station

    # Every frame goes into the store, because its first beat is there before its destination; one
    # that is not wanted ends with `error`, and the store takes it back. Nothing else can come
    # meanwhile, so the room that it took was nobody's.
    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = self.store
        wiring.connect(m, store.o, wiring.flipped(self.o))
        beat, take, index = self.tap.beat, Signal(), self.index
        m.d.comb += [
            take.eq(self.tap.valid & self.tap.step),
            store.i.valid.eq(take),
            store.i.p.eq(beat),
            store.i.p.error.eq(beat.last & (beat.error | ~self.wanted)),
        ]
        with m.If(take):
            m.d.sync += index.eq(index + 1)
            with m.If(beat.last):
                m.d.sync += index.eq(0)
            with m.Elif(index == self.beats):
                m.d.sync += index.eq(index)
        self._judge(m, take, beat)
        self._learn(m, take, beat)
        with m.If(take & beat.last):
            m.d.sync += self.ours.eq(self.wanted & ~beat.error)
        m.d.comb += self.lost.eq(store.dropped_overflow & self.ours)
        return m

    def _judge(self, m, take, beat):
        """Compare the destination as it comes; the verdict is a register in step with the tap."""
        n, tap, wrong, group = self.width // 8, self.tap, Signal(), Signal()
        end = (ADDRESS_BYTES // 2 - 1) // n  # the beat in which the destination ends
        wanted = {k: self.mac.word_select(k, 8) for k in range(ADDRESS_BYTES // 2)}
        m.d.comb += [tap.alter.eq(0), tap.data.eq(0), group.eq(self.group)]
        with m.Switch(self.index):
            for k in range(end + 1):
                with m.Case(k):
                    terms = [
                        beat.data.word_select(at % n, 8) != byte
                        for at, byte in wanted.items()
                        if at // n == k
                    ]
                    m.d.comb += wrong.eq(Cat(*terms).any())
                    if k == 0:
                        m.d.comb += group.eq(beat.data[0])
        settled, missed = Signal(), Signal()
        m.d.comb += [
            settled.eq(take & (self.index == end)),
            missed.eq(wrong if end == 0 else self.miss | wrong),
        ]
        with m.If(take):
            m.d.sync += [self.miss.eq(missed & ~beat.last), self.group.eq(group)]
        with m.If(tap.step):
            m.d.sync += tap.drop.eq(settled & ~missed)
        with m.If(take & beat.last):
            m.d.sync += self.wanted.eq(0)
        with m.Elif(settled):
            m.d.sync += self.wanted.eq(~missed | group)

    def _learn(self, m, take, beat):
        n, seen = self.width // 8, self.seen
        for k in range(6):
            at, byte = 6 + k, beat.data.word_select((6 + k) % n, 8)
            with m.If(take & (self.index == at // n)):
                m.d.sync += seen.word_select(k, 8).eq(byte)
        good = take & beat.last & ~beat.error & (self.index == self.beats)
        with m.If(good & ~seen[0]):
            m.d.sync += self.source.eq(seen)
