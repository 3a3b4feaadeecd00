"""From what is known of a request to the bytes in memory that answer it."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ...models.http.image import PLACES, SAME_ROOM
from ...models.http.limits import LIMITS
from ...models.http.request import Verdict
from ..memory import ADDR_WIDTH
from ..tcp.service import LENGTH_WIDTH, SESSION_WIDTH
from .lane import parsed_layout

__all__ = ["PIECE", "Answer", "Kind", "answer_layout"]

#: Content from this size on is sent in pieces of it, so that each fits a descriptor.
PIECE = 1 << (LENGTH_WIDTH - 1)


class Kind(enum.Enum, shape=3):
    """What an answer is, for the counters."""

    FOUND = 0
    NOT_MODIFIED = 1
    NOT_FOUND = 2
    REJECTED = 3
    UNUSUAL = 4  # the firmware's, for whom the answer 503 stands in


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
    an answer of garbage, of at most 4 GiB.
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
        with m.If(i.valid & i.ready):
            m.d.sync += [
                o.payload.session.eq(said.session),
                o.payload.bytes.eq(said.bytes),
                o.payload.kind.eq(kind),
                o.payload.close.eq(close),
                o.payload.rest.eq(0),
                o.payload.rest_addr.eq(said.entry.found + said.entry.found_header),
            ]
            with m.If(kind == Kind.FOUND):
                self._found(m, close)
            with m.Elif(kind == Kind.NOT_MODIFIED):
                self._same(m, close)
            with m.Else():
                self._prepared(m, verdict, close)
        return m

    def _found(self, m, close):
        said, o, entry = self.i.payload, self.o.payload, self.i.payload.entry
        header = Signal(10)
        m.d.comb += header.eq(Mux(close, entry.close_header, entry.found_header))
        m.d.sync += [o.addr.eq(Mux(close, entry.close, entry.found)), o.length.eq(header)]
        with m.If(~said.head):
            with m.If((close & ~entry.whole_close) | (entry.length >= PIECE)):
                m.d.sync += o.rest.eq(entry.length)
            with m.Else():
                m.d.sync += o.length.eq(header + entry.length[:LENGTH_WIDTH])

    def _same(self, m, close):
        o, entry = self.o.payload, self.i.payload.entry
        m.d.sync += [
            o.addr.eq(entry.same + Mux(close, SAME_ROOM, 0)),
            o.length.eq(Mux(close, entry.same_close_header, entry.same_header)),
        ]

    def _prepared(self, m, verdict, close):
        with m.Switch(verdict):
            for (of, closes), place in PLACES.items():
                if not closes:
                    continue
                with m.Case(of):
                    self._place(m, place)
        still_open = PLACES[Verdict.NOT_FOUND, False]
        with m.If((verdict == Verdict.NOT_FOUND) & ~close):
            self._place(m, still_open)

    def _place(self, m, place):
        o, head = self.o.payload, self.i.payload.head
        m.d.sync += [
            o.addr.eq(self.base + place.offset),
            o.length.eq(Mux(head, place.header, place.whole)),
        ]
