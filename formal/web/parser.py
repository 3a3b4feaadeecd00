"""Proof of ``HeadParser`` in ``cores/web/parser.py`` against a small model, for short heads.

Any head of up to 18 bytes is compared with a definition by places: a method of ``a`` bytes, a
target of ``t``, the version, two line ends, perhaps an empty line before; so with no fields. The
verdict must be that of the definition for every one of the 256**18 strings, and of those that are
shorter: ``OK`` for ``GET / HTTP/1.0`` alone, ``BAD_REQUEST`` for all that has another shape.

Bounded: a longer head is not compared here. Tests compare such with the golden model, 10 million of
them at night.

Not proved: longer heads, so no field; the path's CRC; bytes with gaps between them.
"""

from functools import reduce
from operator import and_

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, C, Cover, Elaboratable, Mux, Signal

from ...cores.web.finder import End
from ...models.http.request import Verdict
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]

MOST = 18
#: Bytes of a head without fields beside its method and target: two spaces, version, two line ends.
REST = 14
TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ALPHA = TOKEN[-52:]
DIGIT = TOKEN[15:25]
PATH = ALPHA + DIGIT + b"-._~!$&'()*+,;=:@/"


def _among(byte, members):
    return byte.matches(*(format(member, "08b") for member in members))


def _equal(bytes_, text):
    return reduce(and_, (byte == C(value, 8) for byte, value in zip(bytes_, text, strict=True)))


def _target(t):
    """Whether these bytes are a target of origin form, or of absolute form, as far as they go."""
    first, rest = t[0], t[1:]
    query, origin, other = C(0, 1), C(1, 1), C(1, 1)
    for byte in rest:
        query |= byte == ord("?")
        origin &= _among(byte, PATH) | query & (byte == ord("?"))
        other &= _among(byte, PATH + b"?[]")
    return (first == ord("/")) & origin, _among(first, ALPHA) & other


def _plain(t):
    """Whether no segment of a target of origin form, of at most 3 bytes, is the firmware's."""
    odd, query = C(0, 1), C(0, 1)
    for before, byte in zip(t, t[1:], strict=False):
        query |= before == ord("?")
        odd |= ~query & (before == ord("/")) & ((byte == ord("/")) | (byte == ord(".")))
    return ~odd


def _line(head, a, t):
    """Verdict on the bytes ``head`` as a method of ``a`` and a target of ``t`` bytes; 0: none."""
    method, target = head[:a], head[a + 1 : a + 1 + t]
    version, ends = head[a + t + 2 : a + t + 10], head[a + t + 10 :]
    origin, other = _target(target)
    shape = reduce(and_, (_among(byte, TOKEN) for byte in method))
    shape &= (head[a] == ord(" ")) & (head[a + 1 + t] == ord(" ")) & (origin | other)
    shape &= _equal(version[:5], b"HTTP/") & _among(version[5], DIGIT) & _among(version[7], DIGIT)
    shape &= (version[6] == ord(".")) & _equal(ends, b"\r\n\r\n")
    known = _equal(method, b"PUT") if a == 3 else C(0, 1)
    get = _equal(method, b"GET") if a == 3 else C(0, 1)
    served = Mux(origin & _plain(target), Verdict.OK, Verdict.FIRMWARE)
    verdict = Mux(known, Verdict.METHOD_NOT_ALLOWED, Verdict.NOT_IMPLEMENTED)
    verdict = Mux(get, served, verdict)
    verdict = Mux(version[7] == ord("0"), verdict, Verdict.BAD_REQUEST)
    verdict = Mux(version[5] == ord("1"), verdict, Verdict.VERSION_NOT_SUPPORTED)
    return shape, verdict


class HeadParserProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        length, came = Signal(range(MOST + 1)), Signal(range(MOST + 2))
        head = [Signal(8, name=f"byte{k}") for k in range(MOST)]
        i = dut.i
        free(m, i.payload.data)
        m.d.comb += [
            length.eq(AnyConst(len(length))),
            Assume((length != 0) & (length <= MOST)),
            i.valid.eq(came != length),
            i.payload.end.eq(Mux(came + 1 == length, End.HEAD, End.MORE)),
        ]
        with m.If(i.valid & i.ready):
            m.d.sync += came.eq(came + 1)
            for k, byte in enumerate(head):
                with m.If(came == k):
                    m.d.sync += byte.eq(i.payload.data)
        verdict = Signal(4, name="expected")
        m.d.comb += verdict.eq(self._expected(m, length, head))
        waits = Signal(range(4), name="cycles_since")
        with m.If((came == length) & (waits != 3)):
            m.d.sync += waits.eq(waits + 1)
        m.d.comb += [
            Assert(~dut.o.valid | (came == length)),
            Assert((waits != 3) | dut.o.valid),
            Assert(~dut.o.valid | (dut.o.payload.verdict == verdict)),
            Assert(~dut.o.valid | (dut.o.payload.length == length)),
            Cover(dut.o.valid & (verdict == Verdict.OK)),
        ]
        return m

    def _expected(self, m, length, head):
        verdict = C(Verdict.BAD_REQUEST, 4)
        for skip in (0, 2):
            for a in (1, 2, 3):
                for t in range(1, MOST - REST - skip - a + 1):
                    end = skip + a + t + REST
                    shape, said = _line(head[skip:end], a, t)
                    if skip:
                        shape &= _equal(head[:2], b"\r\n")
                    is_it = Signal(name=f"line_{skip}_{a}_{t}")
                    m.d.comb += is_it.eq(shape & (length == end))
                    verdict = Mux(is_it, said, verdict)
        return verdict


PROOFS = (
    Proof(
        name="web_parser",
        core="cores.web.parser.HeadParser(60, 30, 16)",
        says="every head of at most 18 bytes gets the verdict of a definition by places",
        module="trebuchet.cores.web.parser",
        build=lambda cores: HeadParserProof(cores.HeadParser(60, 30, 16)),
        depth=MOST + 4,
        cover_depth=MOST + 4,
        method="bmc",
        bounded="the definition is one by places, which longer heads have too many of",
        mutants=(
            Mutant("any_digits", "right.eq(c.dot)", "right.eq(1)", MOST + 4),
            Mutant(
                "takes_no_empty_line",
                "c.cr & first, State.EMPTY_LF",
                "c.cr & first, State.BAD",
                MOST + 4,
            ),
        ),
        assumes="bytes come without gaps",
        not_proved="longer heads, so no field; the path's CRC; bytes with gaps between them",
    ),
)
