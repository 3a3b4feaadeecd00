"""One step of the search for the end of a request head: a beat of bytes, whatever its alignment."""

from amaranth import C, Mux, Signal
from amaranth.hdl import Module
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from ..stream import check_data_width

__all__ = ["CR", "LF", "EndScan", "ScanState"]

CR, LF = 0x0D, 0x0A


class ScanState(enum.Enum, shape=3):
    """Where in a head the bytes so far end, numbered as in :mod:`trebuchet.models.http.head`."""

    START = 0  # before the first byte
    EMPTY = 1  # CR of an empty line before the request
    LINE = 2  # at the beginning of a line
    TEXT = 3  # in a line
    LINE_CR = 4  # CR after text
    LAST_CR = 5  # CR at the beginning of a line


class EndScan(wiring.Component):
    """Finds the end of a request head in one beat; combinational.

    As :func:`trebuchet.models.http.head.scan`: a head ends with the first CR LF CR LF, or, broken,
    with the first CR that no LF follows or LF that no CR precedes (RFC 9112, 2.2). One empty line
    before a request belongs to the head.

    ==========  ===  ==============  =================================================
    member      dir  width           meaning
    ==========  ===  ==============  =================================================
    ``data``    In   width           the beat, its first byte lowest
    ``skip``    In   range(n)        bytes before the first one to look at
    ``stop``    In   range(n + 1)    bytes before the first one not to look at
    ``state``   In   ScanState       of the head's bytes before these; START at first
    ``after``   Out  ScanState       with these bytes; with ``found`` it means nothing
    ``found``   Out  1               the end is among them
    ``broken``  Out  1               with ``found``: it is a CR or LF that may not be
    ``end``     Out  range(n + 1)    with ``found``: bytes of the beat up to the end,
                                     the end included; else ``stop``
    ==========  ===  ==============  =================================================

    Parameters: ``width``, data path in bits, of n bytes. Bad input: with ``skip >= stop`` nothing
    is looked at. No state, so no reset; the depth is a LUT for each byte.
    """

    def __init__(self, width=64):
        self.width = check_data_width(width)
        n = width // 8
        super().__init__(
            {
                "data": In(width),
                "skip": In(range(n)),
                "stop": In(range(n + 1)),
                "state": In(ScanState),
                "after": Out(ScanState),
                "found": Out(1),
                "broken": Out(1),
                "end": Out(range(n + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        state, found = self.state, C(0, 1)
        m.d.comb += self.end.eq(self.stop)
        for k in range(self.width // 8):
            byte = self.data.word_select(k, 8)
            now, cr, lf = (Signal(name=f"{name}{k}") for name in ("now", "cr", "lf"))
            m.d.comb += [
                now.eq((self.skip <= k) & (self.stop > k)),
                cr.eq(byte == CR),
                lf.eq(byte == LF),
            ]
            after, ends, breaks = self._byte(m, state, cr, lf, k)
            next_state, seen = Signal(ScanState, name=f"state{k}"), Signal(name=f"found{k}")
            m.d.comb += [
                next_state.eq(Mux(now, after, state)),
                seen.eq(found | (now & (ends | breaks))),
            ]
            with m.If(now & ~found & (ends | breaks)):
                m.d.comb += [self.end.eq(k + 1), self.broken.eq(breaks)]
            state, found = next_state, seen
        m.d.comb += [self.found.eq(found), self.after.eq(state)]
        return m

    def _byte(self, m, state, cr, lf, k):
        """The state after a byte, whether it ends the head, whether it breaks it."""
        after = Signal(ScanState, name=f"after{k}")
        ends, breaks = Signal(name=f"ends{k}"), Signal(name=f"breaks{k}")
        m.d.comb += after.eq(ScanState.TEXT)
        with m.Switch(state):
            with m.Case(ScanState.EMPTY, ScanState.LINE_CR):
                m.d.comb += [after.eq(ScanState.LINE), breaks.eq(~lf)]
            with m.Case(ScanState.LAST_CR):
                m.d.comb += [ends.eq(lf), breaks.eq(~lf)]
            with m.Default():
                m.d.comb += breaks.eq(lf)
        with m.If(cr):
            with m.Switch(state):
                with m.Case(ScanState.START):
                    m.d.comb += after.eq(ScanState.EMPTY)
                with m.Case(ScanState.LINE):
                    m.d.comb += after.eq(ScanState.LAST_CR)
                with m.Case(ScanState.TEXT):
                    m.d.comb += after.eq(ScanState.LINE_CR)
        return after, ends, breaks
