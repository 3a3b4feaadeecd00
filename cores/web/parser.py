"""The head parser: one verdict on a request head, a byte a cycle (RFC 9110, 9112, 3986)."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ...models.http.limits import LIMITS
from ...models.http.request import Verdict
from ..crc import CRC_INIT, crc_step
from .characters import CharacterLayout, classify
from .finder import End
from .values import FieldValue
from .word_walk import WordWalk
from .words import Word

__all__ = ["ByteLayout", "HeadParser", "State", "request_layout"]

#: A byte of a head, and what follows it.
ByteLayout = data.StructLayout({"data": unsigned(8), "end": End})


def request_layout(head=LIMITS.head, path=LIMITS.path):
    """Layout of what is known of a head of at most ``head`` bytes (:class:`HeadParser`)."""
    return data.StructLayout(
        {
            "verdict": unsigned(4),
            "head": unsigned(1),
            "close": unsigned(1),
            "http10": unsigned(1),
            "any_tag": unsigned(1),
            "tagged": unsigned(1),
            "tag": unsigned(64),
            "path_offset": unsigned(3),
            "path_length": range(path + 2),
            "path_crc": unsigned(32),
            "length": range(head + 3),
        }
    )


class State(enum.Enum, shape=5):
    """What a head's next byte belongs to."""

    START = 0  # the request line, or an empty line before it
    EMPTY_LF = 1
    FIRST = 2  # the request line, after an empty line
    METHOD = 3
    TARGET = 4  # its first byte
    PATH = 5
    QUERY = 6
    STAR = 7  # behind the target *
    OTHER = 8  # absolute or authority form
    ESCAPE = 9  # first digit after %
    ESCAPE_2 = 10
    VERSION = 11
    VERSION_CR = 12
    VERSION_LF = 13
    LINE = 14  # first byte of a field line, or the CR of the empty line
    NAME = 15
    VALUE = 16
    VALUE_LF = 17
    LAST_LF = 18
    DONE = 19  # nothing: the head is complete
    BAD = 20  # no head


class HeadParser(wiring.Component):
    """Parses a request head strictly, as :func:`trebuchet.models.http.request.parse_head` does.

    Parameters
    ----------
    head, target, path : int
        Limits as in :class:`trebuchet.models.http.limits.Limits`.

    ============  ===  ========================================================================
    member        dir  meaning
    ============  ===  ========================================================================
    ``i``         In   stream of :data:`ByteLayout`: the bytes of a head, an empty line before it
                       included; the last one has another ``end`` than ``MORE``
    ``o``         Out  stream of :func:`request_layout`: the verdict on it; none after ``CUT``
    ``path``      Out  1: ``path_byte`` is a byte of the path; in their order, each for one
                       cycle, all before ``o.valid`` rises
    ``new_path``  Out  1: this path byte is the first one of a head
    ``path_end``  Out  1 in the cycles after a path's last byte, and at least in one:
                       ``path_length`` and ``path_crc`` are those of the whole path. A target that
                       is none may have it, too
    ============  ===  ========================================================================

    ``verdict`` is a number of :class:`~trebuchet.models.http.request.Verdict`. Of a head ended by
    ``HEAD`` it is the model's verdict on the bytes behind the empty line; with ``LONG`` the model's
    on a head that the limit cuts. ``head`` holds for every verdict, the fields after it for ``OK``;
    ``length``, the number of bytes with the empty line, always. ``tagged``: ``tag`` is the tag of
    If-None-Match, the first digit in the highest bits. ``path_offset`` counts from the first byte,
    an empty line included. Of paths longer than ``path`` some bytes are not reported.

    Throughput: a byte a cycle; the verdict on a head of n bytes is offered n + 3 cycles after its
    first byte is taken, and the next head may follow a cycle after the verdict is taken.
    Back-pressure: while
    a verdict waits no byte is taken. Reset: at the start of a head. Bad input: what is no head
    gets ``BAD_REQUEST``; bytes without an end keep it waiting; a head of more than ``head`` bytes
    (an empty line before it does not count) gets ``FIELDS_TOO_LARGE``, or what comes before that;
    of one longer than ``head`` + 2 ``length`` is wrong.
    """

    def __init__(self, head=LIMITS.head, target=LIMITS.target, path=LIMITS.path):
        self.head_limit, self.target_limit, self.path_limit = head, target, path
        self.layout = request_layout(head, path)
        super().__init__(
            {
                "i": In(stream.Signature(ByteLayout)),
                "o": Out(stream.Signature(self.layout)),
                "path": Out(1),
                "new_path": Out(1),
                "path_byte": Out(8),
                "path_end": Out(1),
                "path_length": Out(range(path + 2)),
                "path_crc": Out(32),
            }
        )
        # No ports: for proofs.
        self.byte = Signal(8)  # the byte at work, its classes, and whether there is one
        self.classes = Signal(CharacterLayout)
        self.end = Signal(End)
        self.works = Signal()
        self.state, self.within = Signal(State), Signal(State)
        self.slash = Signal()  # the byte before was a slash
        self.place = Signal(3)  # bytes of the version so far
        self.over = Signal(3)  # the last byte was taken so many cycles ago; 0: it was not
        self.walk = WordWalk()
        self.field = FieldValue()

    # A byte is classified in one cycle and moves the state machines in the next. When the last one
    # has, `over` takes the facts to the verdict in two steps. Facts are registers that are cleared
    # for each head.
    def elaborate(self, platform):
        m = Module()
        m.submodules.walk, m.submodules.field = self.walk, self.field
        facts = Signal(
            data.StructLayout(
                {
                    "method": unsigned(4),
                    "empty": 1,
                    "star": 1,
                    "numeric": 1,  # a target that only CONNECT has
                    "odd": 1,  # a target that only the firmware takes
                    "long": 1,
                    "major": 1,
                    "minor0": 1,
                }
            )
        )
        self.facts = facts
        self.clear = Signal()
        taken = self.i.valid & self.i.ready
        m.d.comb += [self.i.ready.eq(~self.over.any()), self.walk.byte.eq(self.byte)]
        m.d.sync += self.works.eq(taken)
        with m.If(taken):
            m.d.sync += [self.byte.eq(self.i.payload.data), self.end.eq(self.i.payload.end)]
            m.d.sync += classify(self.i.payload.data, self.classes)
            with m.If(self.i.payload.end != End.MORE):
                m.d.sync += self.over.eq(1)
        with m.If(self.works):
            m.d.sync += self.slash.eq(self.classes.slash)
            self._request_line(m)
            self._lines(m)
        self._field(m)
        self._target(m)
        self._finish(m)
        with m.If(self.clear):
            m.d.sync += [facts.eq(0), self.state.eq(State.START), self.place.eq(0)]
        return m

    def _goes(self, m, *ways):
        """In the first of ``(condition, state)`` whose condition holds; else the head is bad."""
        m.d.sync += self.state.eq(State.BAD)
        for condition, state in reversed(ways):
            with m.If(condition):
                m.d.sync += self.state.eq(state)

    def _request_line(self, m):
        c, walk, facts = self.classes, self.walk, self.facts
        with m.Switch(self.state):
            with m.Case(State.START, State.FIRST):
                first = self.state == State.START
                self._goes(m, (c.cr & first, State.EMPTY_LF), (c.token, State.METHOD))
                m.d.comb += [walk.start.eq(c.token), walk.methods.eq(1)]
            with m.Case(State.EMPTY_LF):
                self._goes(m, (c.lf, State.FIRST))
                m.d.sync += facts.empty.eq(1)
            with m.Case(State.METHOD):
                self._goes(m, (c.token, State.METHOD), (c.sp, State.TARGET))
                m.d.comb += [walk.step.eq(1), walk.exact.eq(1)]
                with m.If(c.sp):
                    m.d.sync += facts.method.eq(walk.word)
            with m.Case(State.TARGET):
                other = c.alpha | c.digit | c.open
                self._goes(m, (c.slash, State.PATH), (c.star, State.STAR), (other, State.OTHER))
                m.d.sync += [facts.star.eq(c.star), facts.odd.eq(~c.slash)]
                m.d.sync += facts.numeric.eq(c.digit | c.open)
            with m.Case(State.PATH):
                self._goes(
                    m,
                    (c.path | c.slash, State.PATH),
                    (c.percent, State.ESCAPE),
                    (c.query, State.QUERY),
                    (c.sp, State.VERSION),
                )
                m.d.sync += self.within.eq(State.PATH)
                with m.If(c.percent | (self.slash & (c.slash | c.dot))):
                    m.d.sync += facts.odd.eq(1)
            with m.Case(State.QUERY):
                self._goes(
                    m,
                    (c.path | c.slash | c.query, State.QUERY),
                    (c.percent, State.ESCAPE),
                    (c.sp, State.VERSION),
                )
                m.d.sync += self.within.eq(State.QUERY)
            with m.Case(State.STAR):
                self._goes(m, (c.sp, State.VERSION))
            with m.Case(State.OTHER):
                more = c.path | c.slash | c.query | c.open | c.close
                self._goes(m, (more, State.OTHER), (c.percent, State.ESCAPE), (c.sp, State.VERSION))
                m.d.sync += self.within.eq(State.OTHER)
            with m.Case(State.ESCAPE):
                self._goes(m, (c.hex, State.ESCAPE_2))
            with m.Case(State.ESCAPE_2):
                self._goes(m, (c.hex, self.within))
            with m.Case(State.VERSION):
                self._version(m)
            with m.Case(State.VERSION_CR):
                self._goes(m, (c.cr, State.VERSION_LF))
            with m.Case(State.VERSION_LF):
                fits = ~facts.star | (facts.method == Word.OPTIONS)
                fits &= ~facts.numeric | (facts.method == Word.CONNECT)
                self._goes(m, (c.lf & fits, State.LINE))

    def _version(self, m):
        """``HTTP/``, a digit, a dot, a digit."""
        c, facts, at = self.classes, self.facts, self.place
        m.d.sync += self.place.eq(at + 1)
        right = Signal()
        with m.Switch(at):
            for k, byte in enumerate(b"HTTP/"):
                with m.Case(k):
                    m.d.comb += right.eq(self.byte == byte)
            with m.Case(5):
                m.d.comb += right.eq(c.digit)
                m.d.sync += facts.major.eq(self.byte[:4] == 1)
            with m.Case(6):
                m.d.comb += right.eq(c.dot)
            with m.Case(7):
                m.d.comb += right.eq(c.digit)
                m.d.sync += facts.minor0.eq(self.byte[:4] == 0)
        self._goes(m, (right & (at == 7), State.VERSION_CR), (right, State.VERSION))

    def _lines(self, m):
        c, walk, field = self.classes, self.walk, self.field
        with m.Switch(self.state):
            with m.Case(State.LINE):
                self._goes(m, (c.token, State.NAME), (c.cr, State.LAST_LF))
                m.d.comb += walk.start.eq(c.token)
            with m.Case(State.NAME):
                self._goes(m, (c.token, State.NAME), (c.colon, State.VALUE))
                m.d.comb += [walk.step.eq(1), field.begin.eq(c.colon)]
            with m.Case(State.VALUE):
                self._goes(m, (c.value, State.VALUE), (c.cr, State.VALUE_LF))
                m.d.comb += field.step.eq(c.value)
            with m.Case(State.VALUE_LF):
                self._goes(m, (c.lf & field.right, State.LINE))
                m.d.comb += field.finish.eq(c.lf)
            with m.Case(State.LAST_LF):
                self._goes(m, (c.lf, State.DONE))
            with m.Case(State.DONE):
                self._goes(m)

    def _field(self, m):
        """The field machine and the word machine, which works for it in values."""
        walk, field = self.walk, self.field
        m.d.comb += [
            field.byte.eq(self.byte),
            field.classes.eq(self.classes),
            field.name.eq(walk.word),
            field.word.eq(walk.word),
            field.clear.eq(self.clear),
            walk.set.eq(field.set),
            walk.target.eq(field.target),
        ]
        with m.If(field.walk):
            m.d.comb += walk.step.eq(1)

    def _target(self, m):
        """Lengths, the path's CRC, and the path itself."""
        c, facts, state, works = self.classes, self.facts, self.state, self.works
        self.length = Signal(range(self.head_limit + 3))
        self.target_length = Signal(range(self.target_limit + 2))
        self.crc = Signal(32, init=CRC_INIT)
        self.in_target = in_target = Signal()
        with m.Switch(state):
            with m.Case(
                State.TARGET,
                State.PATH,
                State.QUERY,
                State.STAR,
                State.OTHER,
                State.ESCAPE,
                State.ESCAPE_2,
            ):
                m.d.comb += in_target.eq(1)
        with m.Switch(state):
            with m.Case(State.QUERY, State.VERSION):
                m.d.comb += self.path_end.eq(1)
        in_path = works & ((state == State.TARGET) | ((state == State.PATH) & ~c.query & ~c.sp))
        after = crc_step(m, self.crc, self.byte, "crc")
        m.d.comb += [
            self.path.eq(in_path & (self.path_length < self.path_limit)),
            self.new_path.eq(self.path_length == 0),
            self.path_byte.eq(self.byte),
            self.path_crc.eq(~self.crc),
        ]
        with m.If(works):
            m.d.sync += self.length.eq(self.length + 1)
            with m.If(in_target & ~c.sp & (self.target_length <= self.target_limit)):
                m.d.sync += self.target_length.eq(self.target_length + 1)
        m.d.sync += facts.long.eq(self.target_length > self.target_limit)
        with m.If(in_path):
            m.d.sync += self.crc.eq(after)
            with m.If(self.path_length <= self.path_limit):
                m.d.sync += self.path_length.eq(self.path_length + 1)
        with m.If(self.clear):
            m.d.sync += [
                self.length.eq(0),
                self.target_length.eq(0),
                self.path_length.eq(0),
                self.crc.eq(CRC_INIT),
            ]

    def _finish(self, m):
        """Two cycles after the last byte all facts are there: decide."""
        o, facts, said = self.o, self.facts, self.field.facts
        self.http10 = http10 = Signal()
        m.d.comb += http10.eq(facts.minor0)
        with m.If((self.over != 0) & (self.over != 4)):
            m.d.sync += self.over.eq(self.over + 1)
        with m.If(self.over == 3):
            m.d.sync += [
                o.payload.verdict.eq(self._verdict(m)),
                o.payload.head.eq(facts.method == Word.HEAD),
                o.payload.close.eq(said.close | http10),
                o.payload.http10.eq(http10),
                o.payload.any_tag.eq(said.any_tag),
                o.payload.tagged.eq(said.tagged),
                o.payload.tag.eq(self.field.tag),
                o.payload.path_offset.eq(Mux(facts.method == Word.HEAD, 5, 4) + (facts.empty << 1)),
                o.payload.path_length.eq(self.path_length),
                o.payload.path_crc.eq(self.path_crc),
                o.payload.length.eq(self.length),
                o.valid.eq(self.end != End.CUT),
            ]
            m.d.comb += self.clear.eq(1)
        with m.If((self.over == 4) & (~o.valid | o.ready)):
            m.d.sync += [self.over.eq(0), o.valid.eq(0)]

    def _verdict(self, m):
        """The first that applies, in the order of the model's table."""
        facts, said, state, http10 = self.facts, self.field.facts, self.state, self.http10
        method, served, content = facts.method, Signal(), Signal()
        verdict = Signal(4)
        m.d.comb += [
            served.eq((method == Word.GET) | (method == Word.HEAD)),
            content.eq((said.length & said.content) | said.codings),
        ]
        framed = said.codings & (said.length | http10)
        expects = said.expect & (~said.continues | (content & ~http10))
        odd = facts.odd | said.odd | content | (self.path_length > self.path_limit)
        whole, fits = Signal(), Signal()
        m.d.comb += [
            whole.eq(state == State.DONE),
            fits.eq(self.length <= self.head_limit + (facts.empty << 1)),
        ]
        cases = (
            ((state == State.BAD) | (~whole & (self.end != End.LONG)), Verdict.BAD_REQUEST),
            (~whole & (self.in_target | facts.long), Verdict.URI_TOO_LONG),
            (~whole | ~fits, Verdict.FIELDS_TOO_LARGE),
            (~facts.major, Verdict.VERSION_NOT_SUPPORTED),
            (~said.host & ~http10, Verdict.BAD_REQUEST),
            (framed, Verdict.BAD_REQUEST),
            (facts.long, Verdict.URI_TOO_LONG),
            (said.codings & said.more, Verdict.NOT_IMPLEMENTED),
            (method == Word.OPTIONS, Verdict.OPTIONS),
            (method == Word.NONE, Verdict.NOT_IMPLEMENTED),
            (~served & content & ~said.expect, Verdict.FIRMWARE),
            (~served, Verdict.METHOD_NOT_ALLOWED),
            (expects, Verdict.EXPECTATION_FAILED),
            (odd, Verdict.FIRMWARE),
        )
        m.d.comb += verdict.eq(Verdict.OK)
        for condition, answer in reversed(cases):
            with m.If(condition):
                m.d.comb += verdict.eq(answer)
        return verdict
