"""Values of the header fields that decide about a request (RFC 9110, 9112)."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from .characters import CharacterLayout
from .word_walk import NODE_WIDTH
from .words import DEAD, VALUES, Word

__all__ = ["FactsLayout", "FieldValue", "Place"]

#: What the field lines so far say.
FactsLayout = data.StructLayout(
    {
        "host": unsigned(1),  # Host is there
        "length": unsigned(1),  # Content-Length is there, ...
        "content": unsigned(1),  # ... and not 0
        "codings": unsigned(1),  # Transfer-Encoding is there, ...
        "more": unsigned(1),  # ... with a coding before chunked
        "close": unsigned(1),  # Connection has the option close
        "expect": unsigned(1),  # Expect is there, ...
        "continues": unsigned(1),  # ... and is 100-continue
        "match": unsigned(1),  # If-None-Match is there, ...
        "tagged": unsigned(1),  # ... as one tag of ours
        "any_tag": unsigned(1),  # ... as *
        "odd": unsigned(1),  # ... otherwise; or another field that only the firmware takes
    }
)


class Place(enum.Enum, shape=4):
    """Where in its value a Host, Content-Length or If-None-Match is."""

    START = 0
    NAME = 1
    ESCAPE = 2
    ESCAPE_2 = 3
    LITERAL = 4  # behind [
    ADDRESS = 5  # in the address literal
    LITERAL_END = 6
    PORT = 7
    DIGITS = 8
    TAG = 9
    TAG_END = 10
    STAR = 11
    BAD = 12


class FieldValue(wiring.Component):
    """Checks one field value after the other, a byte a cycle, and collects what they say.

    ============  ===  =======================================================================
    ``begin``     In   a value begins with the next byte; ``name`` is the field's
                       :class:`~.words.Word`
    ``step``      In   ``byte`` belongs to the value; whitespace around it, too
    ``classes``   In   of ``byte`` (:mod:`.characters`)
    ``word``      In   the word so far of :class:`~.word_walk.WordWalk`
    ``walk``      Out  with ``step``: the word goes on with this byte
    ``set``       Out  with ``step``: it goes on at node ``target``
    ``right``     Out  the value as it is now is one that the field may have, after those before
    ``finish``    In   the value has ended and counts; only with ``right``
    ``clear``     In   forget all: the next head begins
    ``facts``     Out  :data:`FactsLayout`: what the values that count say; ``close`` and
                       ``content`` are set by bytes of a value that is under way, too
    ``tag``       Out  64: with ``facts.tagged``, the tag, its first digit highest
    ============  ===  =======================================================================

    At most one of ``begin``, ``step``, ``finish`` and ``clear`` in a cycle. Latency 1 cycle; no
    back-pressure. Reset: as ``clear``.
    """

    begin: In(1)
    name: In(4)
    step: In(1)
    byte: In(8)
    classes: In(CharacterLayout)
    word: In(4)
    walk: Out(1)
    set: Out(1)
    target: Out(NODE_WIDTH)
    right: Out(1)
    finish: In(1)
    clear: In(1)
    facts: Out(FactsLayout)
    tag: Out(64)

    #: Digits of a Content-Length, and of a tag.
    LENGTH_DIGITS, TAG_DIGITS = 18, 16

    def __init__(self):
        super().__init__()
        # No ports: for proofs.
        self.kind = Signal(4)  # the field
        self.lead, self.tail = Signal(), Signal()  # no byte of the element yet; space behind it
        self.place = Signal(Place)
        self.count = Signal(range(32))  # digits
        self.bad = Signal()  # the list of codings is wrong

    def elaborate(self, platform):
        m = Module()
        c, kind, facts = self.classes, self.kind, self.facts
        splits, listed = Signal(), Signal()
        m.d.comb += [
            splits.eq((kind == Word.CONNECTION) | (kind == Word.TRANSFER_ENCODING)),
            listed.eq(c.comma & splits),
        ]
        with m.If(self.begin):
            m.d.sync += [kind.eq(self.name), self.lead.eq(1), self.tail.eq(0), self.bad.eq(0)]
            m.d.sync += [self.place.eq(Place.START), self.count.eq(0)]
        with m.If(self.step & listed):
            m.d.sync += [self.lead.eq(1), self.tail.eq(0)]
            with m.If(kind == Word.CONNECTION):
                m.d.sync += facts.close.eq(facts.close | self._is(Word.CLOSE))
            with m.Else():
                m.d.sync += facts.more.eq(1)
                with m.If(self.lead | self._is(Word.CHUNKED)):
                    m.d.sync += self.bad.eq(1)
        with m.Elif(self.step & c.space):
            m.d.sync += self.tail.eq(~self.lead)
        with m.Elif(self.step):
            m.d.sync += self.lead.eq(0)
            self._word(m)
            with m.Switch(kind):
                with m.Case(Word.HOST):
                    self._host(m)
                with m.Case(Word.CONTENT_LENGTH):
                    self._length(m)
                with m.Case(Word.IF_NONE_MATCH):
                    self._tag(m)
            with m.If(self.tail):
                m.d.sync += self.place.eq(Place.BAD)
        self._judge(m)
        with m.If(self.clear):
            m.d.sync += facts.eq(0)
        return m

    def _is(self, word):
        """Whether the element is this word."""
        return ~self.lead & (self.word == word)

    def _word(self, m):
        """Start a word with the first byte of an element; end it with a second one."""
        m.d.comb += [self.set.eq(self.lead | self.tail), self.walk.eq(1), self.target.eq(DEAD)]
        folded = Cat(self.byte[:5], self.byte[5] | self.byte[6], self.byte[6:])
        with m.Switch(self.kind):
            for kind, (first, node) in VALUES.items():
                with m.Case(kind):
                    with m.If(self.lead & (folded == first)):
                        m.d.comb += self.target.eq(node)

    def _goes(self, m, *ways):
        m.d.sync += self.place.eq(Place.BAD)
        for condition, place in reversed(ways):
            with m.If(condition):
                m.d.sync += self.place.eq(place)

    def _host(self, m):
        """RFC 9110, 7.2; RFC 3986, 3.2.2."""
        c = self.classes
        with m.Switch(self.place):
            with m.Case(Place.START):
                ways = (c.host, Place.NAME), (c.percent, Place.ESCAPE), (c.open, Place.LITERAL)
                self._goes(m, *ways)
            with m.Case(Place.NAME):
                ways = (c.host, Place.NAME), (c.percent, Place.ESCAPE), (c.colon, Place.PORT)
                self._goes(m, *ways)
            with m.Case(Place.ESCAPE):
                self._goes(m, (c.hex, Place.ESCAPE_2))
            with m.Case(Place.ESCAPE_2):
                self._goes(m, (c.hex, Place.NAME))
            with m.Case(Place.LITERAL):
                self._goes(m, (c.host | c.colon, Place.ADDRESS))
            with m.Case(Place.ADDRESS):
                self._goes(m, (c.host | c.colon, Place.ADDRESS), (c.close, Place.LITERAL_END))
            with m.Case(Place.LITERAL_END):
                self._goes(m, (c.colon, Place.PORT))
            with m.Case(Place.PORT):
                self._goes(m, (c.digit, Place.PORT))

    def _length(self, m):
        """RFC 9110, 8.6: digits, not a list of them."""
        digits = (self.place == Place.START) | (self.place == Place.DIGITS)
        fits = digits & (self.count != self.LENGTH_DIGITS)
        self._goes(m, (self.classes.digit & fits, Place.DIGITS))
        m.d.sync += self.count.eq(self.count + 1)
        with m.If(self.byte[:4].any()):
            m.d.sync += self.facts.content.eq(1)

    def _tag(self, m):
        """RFC 9110, 13.1.2: ``*``, or a tag as ours are."""
        c, byte = self.classes, self.byte
        with m.Switch(self.place):
            with m.Case(Place.START):
                self._goes(m, (c.quote, Place.TAG), (c.star, Place.STAR))
            with m.Case(Place.TAG):
                all_there = self.count == self.TAG_DIGITS
                self._goes(m, (c.tag & ~all_there, Place.TAG), (c.quote & all_there, Place.TAG_END))
                m.d.sync += self.count.eq(self.count + 1)
                with m.If(c.tag):
                    digit = Mux(c.digit, byte[:4], byte[:4] + 9)
                    m.d.sync += self.tag.eq(Cat(digit[:4], self.tag[:60]))
            with m.Default():
                m.d.sync += self.place.eq(Place.BAD)

    def _judge(self, m):
        facts, place, finish = self.facts, self.place, self.finish
        m.d.comb += self.right.eq(1)
        with m.Switch(self.kind):
            with m.Case(Word.HOST):
                ends = (Place.NAME, Place.LITERAL_END, Place.PORT)
                whole = Cat(place == end for end in ends).any()
                m.d.comb += self.right.eq(whole & ~facts.host)
                with m.If(finish):
                    m.d.sync += facts.host.eq(1)
            with m.Case(Word.CONNECTION):
                with m.If(finish & self._is(Word.CLOSE)):
                    m.d.sync += facts.close.eq(1)
            with m.Case(Word.CONTENT_LENGTH):
                m.d.comb += self.right.eq((place == Place.DIGITS) & ~facts.length)
                with m.If(finish):
                    m.d.sync += facts.length.eq(1)
            with m.Case(Word.TRANSFER_ENCODING):
                fits = ~self.bad & self._is(Word.CHUNKED)
                m.d.comb += self.right.eq(fits & ~facts.codings)
                with m.If(finish):
                    m.d.sync += facts.codings.eq(1)
            with m.Case(Word.EXPECT):
                with m.If(finish):
                    m.d.sync += facts.expect.eq(1)
                    m.d.sync += facts.continues.eq(~facts.expect & self._is(Word.CONTINUE))
            with m.Case(Word.IF_NONE_MATCH):
                tagged, star = place == Place.TAG_END, place == Place.STAR
                with m.If(finish):
                    m.d.sync += facts.match.eq(1)
                    m.d.sync += [facts.tagged.eq(tagged), facts.any_tag.eq(star)]
                    with m.If(facts.match | ~(tagged | star)):
                        m.d.sync += facts.odd.eq(1)
            with m.Case(Word.UNUSUAL):
                with m.If(finish):
                    m.d.sync += facts.odd.eq(1)
