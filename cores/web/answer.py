"""From what is known of a request to the bytes in memory that answer it."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ...models.http.image import PLACES, SAME_ROOM
from ...models.http.limits import LIMITS
from ...models.http.request import Verdict
from ..memory import ADDR_WIDTH
from ..tcp.service import LENGTH_WIDTH, SESSION_WIDTH
from .lane import parsed_layout

__all__ = ["OFFSET_BITS", "PIECE", "Answer", "Kind", "answer_layout"]

#: Content from this size on is sent in pieces of it, so that each fits a descriptor.
PIECE = 1 << (LENGTH_WIDTH - 1)
#: The prepared responses lie within so many bytes from the image's address on, which is a multiple.
OFFSET_BITS = 12
_PlaceLayout = data.StructLayout({"offset": OFFSET_BITS, "header": 8, "whole": 8})
if any(p.offset >= 1 << OFFSET_BITS or p.whole >= 1 << 8 for p in PLACES.values()):
    raise ValueError("Prepared responses must begin within 4,096 bytes and be shorter than 256")


class Kind(enum.Enum, shape=3):
    """What an answer is, for the counters."""

    FOUND = 0
    NOT_MODIFIED = 1
    NOT_FOUND = 2
    REJECTED = 3
    UNUSUAL = 4  # the firmware's, for whom the answer 503 stands in
    BY_FIRMWARE = 5  # its answer


def answer_layout(head=LIMITS.head):
    """An answer to a head of at most ``head`` bytes (:class:`Answer`)."""
    return data.StructLayout(
        {
            "session": unsigned(SESSION_WIDTH),
            "bytes": range(head + 3),
            "kind": Kind,
            "close": 1,
            "addr": unsigned(ADDR_WIDTH),
            "length": unsigned(LENGTH_WIDTH),
            "rest_addr": unsigned(ADDR_WIDTH),
            "rest": unsigned(32),
        }
    )


class Answer(wiring.Component):
    """Says where in memory the answer to each request lies.

    ==========  ===  ===========================================================================
    member      dir  meaning
    ==========  ===  ===========================================================================
    ``base``    In   address of the image: the prepared responses are at fixed offsets from it
    ``i``       In   stream of :func:`~.lane.parsed_layout`
    ``o``       Out  stream of :func:`answer_layout`
    ==========  ===  ===========================================================================

    The answer is ``length`` bytes at ``addr``, and then ``rest`` bytes at ``rest_addr``. The rest
    is 0 if all lies in one piece of less than :data:`PIECE` bytes of content. ``close``: the
    connection closes behind it. ``bytes``: of the request. A request that is the firmware's is
    answered with 503.

    Parameters: ``head``, largest head. Latency 1 cycle, one a cycle. Back-pressure: ``o`` is a
    register; ``i`` waits while it is full. Reset: empty. Bad input: an entry with garbage yields
    an answer of garbage, of at most 4 GiB; the low 12 bits of ``base`` are ignored.
    """

    def __init__(self, head=LIMITS.head):
        self.layout = answer_layout(head)
        super().__init__(
            {
                "base": In(ADDR_WIDTH),
                "i": In(stream.Signature(parsed_layout(head))),
                "o": Out(stream.Signature(self.layout)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        i, o = self.i, self.o
        said = i.payload
        verdict, close, kind = Signal(4), Signal(), Signal(Kind)
        m.d.comb += [
            verdict.eq(said.verdict),
            close.eq(1),
            kind.eq(Kind.REJECTED),
            i.ready.eq(~o.valid | o.ready),
        ]
        with m.If(said.verdict == Verdict.FIRMWARE):
            m.d.comb += [verdict.eq(Verdict.UNAVAILABLE), kind.eq(Kind.UNUSUAL)]
        with m.Elif(said.verdict == Verdict.OK):
            m.d.comb += close.eq(said.close)
            with m.If(~said.found):
                m.d.comb += [verdict.eq(Verdict.NOT_FOUND), kind.eq(Kind.NOT_FOUND)]
            with m.Else():
                m.d.comb += kind.eq(Mux(said.same, Kind.NOT_MODIFIED, Kind.FOUND))
        with m.If(i.ready):
            m.d.sync += o.valid.eq(i.valid)
        entry, place = said.entry, self._prepared(m, verdict, close)
        found, same = kind == Kind.FOUND, kind == Kind.NOT_MODIFIED
        chained, content, header = Signal(), Signal(LENGTH_WIDTH - 1), Signal(10)
        m.d.comb += chained.eq((close & ~entry.whole_close) | (entry.length >= PIECE))
        with m.If(found):
            m.d.comb += header.eq(Mux(close, entry.close_header, entry.found_header))
            with m.If(~said.head & ~chained):
                m.d.comb += content.eq(entry.length)
        with m.Elif(same):
            m.d.comb += header.eq(Mux(close, entry.same_close_header, entry.same_header))
        with m.Else():
            m.d.comb += header.eq(Mux(said.head, place.header, place.whole))
        with m.If(i.valid & i.ready):
            m.d.sync += [
                o.payload.session.eq(said.session),
                o.payload.bytes.eq(said.bytes),
                o.payload.kind.eq(kind),
                o.payload.close.eq(close),
                o.payload.length.eq(header + content),
                o.payload.rest.eq(Mux(found & ~said.head & chained, entry.length, 0)),
                o.payload.rest_addr.eq(entry.found + entry.found_header),
            ]
            with m.If(found):
                m.d.sync += o.payload.addr.eq(Mux(close, entry.close, entry.found))
            with m.Elif(same):
                m.d.sync += o.payload.addr.eq(entry.same + Mux(close, SAME_ROOM, 0))
            with m.Else():
                m.d.sync += o.payload.addr.eq(Cat(place.offset, self.base[OFFSET_BITS:]))
        return m

    def _prepared(self, m, verdict, close):
        """The place of the prepared response to a verdict."""
        place = Signal(_PlaceLayout)
        with m.Switch(Cat(verdict, close | (verdict != Verdict.NOT_FOUND))):
            for (of, closes), values in PLACES.items():
                with m.Case(of | closes << 4):
                    m.d.comb += [getattr(place, k).eq(v) for k, v in values._asdict().items()]
        return place
