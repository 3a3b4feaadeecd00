"""A lane of the web service: parses one request head at a time and looks its path up."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...models.http.image import ENTRY
from ...models.http.limits import LIMITS
from ...models.http.request import Verdict
from ..buffers import StreamFifo
from ..memory import ADDR_WIDTH, MemorySignature
from ..tcp.service import SESSION_WIDTH
from .finder import End, head_beat_layout
from .lookup import Lookup
from .parser import HeadParser

__all__ = ["Lane", "parsed_layout"]

#: What an answer needs of an entry.
_ANSWERS = (
    "whole_close",
    "found_header",
    "close_header",
    "same_header",
    "same_close_header",
    "found",
    "close",
    "length",
    "same",
)


def parsed_layout(head=LIMITS.head):
    """What a lane says of a head of at most ``head`` bytes (:class:`Lane`)."""
    return data.StructLayout(
        {
            "session": unsigned(SESSION_WIDTH),
            "verdict": unsigned(4),
            "head": 1,
            "close": 1,
            "bytes": range(head + 3),
            "found": 1,
            "same": 1,
            "entry": data.StructLayout({name: unsigned(ENTRY[name]) for name in _ANSWERS}),
        }
    )


class Lane(wiring.Component):
    """Takes the beats of heads from the finder, and says what is to be answered.

    Parameters
    ----------
    width : int
        Data path in bits, 32 or 64.
    burst : int
        Beats that the finder sends in one go; twice as many have room.
    limits : Limits
        Of heads, targets and paths.

    ===============  ===  ========================================================================
    member           dir  meaning
    ===============  ===  ========================================================================
    ``session``      In   whose head comes next; constant from before its first beat until ``o``
                          is taken, or its last beat was one with ``CUT``
    ``beat_valid``   In   ``beat`` is one of this lane; it cannot be held back
    ``beat``         In   :func:`~.finder.head_beat_layout`
    ``room``         Out  there is room for a burst, if no beat is under way
    ``index``        In   address of the index; ``mask``: number of buckets - 1
    ``o``            Out  stream of :func:`parsed_layout`: one for each head that did not end with
                          ``CUT``
    ``mem``          Out  memory port that reads, tag width 0
    ===============  ===  ========================================================================

    ``verdict``, ``head``, ``close`` and ``bytes`` as :class:`~.parser.HeadParser` gives them, but
    as below.
    ``found`` and, with it, ``entry`` hold for the verdict ``OK``; ``same``: the client has the
    object already (its If-None-Match names this tag, or any). An object that is not in memory
    (:class:`~.lookup.Lookup`, ``cold``) is firmware's: verdict ``FIRMWARE``.

    The path is looked up as soon as it has been parsed, while the rest of the head is; of a head
    that is rejected in the end the look-up is of no use, and its end is waited for.

    Throughput: a byte a cycle, and 8 cycles more a head, if the look-up takes less time than the
    rest of the head. Back-pressure: while ``o`` waits no byte is taken, and ``room`` falls. Reset:
    empty; the memory must be reset with it. Bad input: see the parser's.
    """

    def __init__(self, width=64, burst=16, limits=LIMITS):
        self.width, self.burst, self.limits = width, burst, limits
        self.beat_layout = head_beat_layout(width)
        super().__init__(
            {
                "session": In(SESSION_WIDTH),
                "beat_valid": In(1),
                "beat": In(self.beat_layout),
                "room": Out(1),
                "index": In(ADDR_WIDTH),
                "mask": In(ADDR_WIDTH),
                "o": Out(stream.Signature(parsed_layout(limits.head))),
                "mem": Out(MemorySignature(width, 0)),
            }
        )
        # No ports: for proofs.
        self.beats = StreamFifo(self.beat_layout, 2 * burst, registered=False)
        self.parser = HeadParser(limits.head, limits.target, limits.path)
        self.lookup = Lookup(width)
        self.at = Signal(range(width // 8))  # the byte of the beat that is next
        self.within = Signal()  # not the beat's first byte
        self.asked = Signal()  # the path of this head is being looked up, or was
        self.head_open = Signal()  # a byte of a head was taken, its last one was not

    def elaborate(self, platform):
        m = Module()
        m.submodules.beats = self.beats
        m.submodules.parser = self.parser
        m.submodules.lookup = self.lookup
        wiring.connect(m, self.lookup.mem, wiring.flipped(self.mem))
        m.d.comb += [
            self.beats.i.valid.eq(self.beat_valid),
            self.beats.i.payload.eq(self.beat),
            self.room.eq(self.beats.level <= self.burst),
        ]
        self._bytes(m)
        self._look_up(m)
        self._say(m)
        return m

    def _bytes(self, m):
        """Send the parser the bytes of the beats. A head begins when the last look-up is over."""
        beat, i = self.beats.o.payload, self.parser.i
        at, last = Signal.like(self.at), Signal()
        may = self.head_open | ~self.lookup.busy
        m.d.comb += [
            at.eq(Mux(self.within, self.at, beat.skip)),
            last.eq(at + 1 == beat.stop),
            i.valid.eq(self.beats.o.valid & may),
            i.payload.data.eq(beat.data.word_select(at, 8)),
            i.payload.end.eq(Mux(last, beat.end, End.MORE)),
            self.beats.o.ready.eq(i.ready & may & last),
        ]
        with m.If(i.valid & i.ready):
            m.d.sync += [
                self.at.eq(at + 1),
                self.within.eq(~last),
                self.head_open.eq(i.payload.end == End.MORE),
            ]

    def _look_up(self, m):
        parser, lookup = self.parser, self.lookup
        asks = Signal()
        fits = parser.path_length <= self.limits.path
        m.d.comb += [
            asks.eq(parser.path_end & ~self.asked & fits),
            lookup.path.eq(parser.path),
            lookup.new.eq(parser.new_path),
            lookup.byte.eq(parser.path_byte),
            lookup.start.eq(asks),
            lookup.index.eq(self.index),
            lookup.mask.eq(self.mask),
        ]
        with m.If(asks):
            m.d.sync += [
                self.asked.eq(1),
                lookup.length.eq(parser.path_length),
                lookup.crc.eq(parser.path_crc),
            ]
        with m.If(parser.i.valid & parser.i.ready & ~self.head_open):
            m.d.sync += self.asked.eq(0)

    def _say(self, m):
        said, o, lookup = self.parser.o, self.o, self.lookup
        entry = lookup.entry
        waits, fits, cold = Signal(), Signal(), Signal()
        m.d.comb += waits.eq((said.payload.verdict == Verdict.OK) & lookup.busy)
        m.d.comb += cold.eq((said.payload.verdict == Verdict.OK) & lookup.cold)
        m.d.comb += fits.eq(said.payload.tagged & (said.payload.tag == entry.tag))
        m.d.comb += [
            o.valid.eq(said.valid & ~waits),
            said.ready.eq(o.ready & ~waits),
            o.payload.session.eq(self.session),
            o.payload.verdict.eq(Mux(cold, Verdict.FIRMWARE, said.payload.verdict)),
            o.payload.head.eq(said.payload.head),
            o.payload.close.eq(said.payload.close),
            o.payload.bytes.eq(said.payload.length),
            o.payload.found.eq(lookup.found),
            o.payload.same.eq(said.payload.any_tag | fits),
        ]
        for name in _ANSWERS:
            m.d.comb += o.payload.entry[name].eq(entry[name])
