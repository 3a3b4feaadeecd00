"""Flits into phits and back: links that are narrower than a flit."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PhitReceiver", "PhitSender"]


def _copy(flit, phit, data):
    """Assignments to all fields of a flit or phit from another, but ``data``."""
    names = [name for name, _ in flit.shape() if name != "data"]
    return [flit.data.eq(data), *(flit[name].eq(phit[name]) for name in names)]


class PhitSender(wiring.Component):
    """The register at the end of an output port: takes flits, sends phits.

    =========  ===  ===============================================================================
    ``put``    In   a flit is taken in this cycle; only with ``ready``
    ``flit``   In   the flit
    ``ready``  Out  a flit can be taken
    ``valid``  Out  of the link, like ``phit``: from registers
    ``phit``   Out  of the link
    =========  ===  ===============================================================================

    Parameters: ``config``, a :class:`~trebuchet.cores.router.contract.LinkConfig`. Latency 1 cycle
    to the first phit, the others follow without a gap, a flit every ``config.phits`` cycles; with
    one phit a flit ``ready`` is always 1. Reset: a flit under way is lost.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "put": In(1),
                "flit": In(config.flit_layout),
                "ready": Out(1),
                "valid": Out(1),
                "phit": Out(config.phit_layout),
            }
        )
        self.left = Signal(range(config.phits))  # phits after the one on the link; for proofs

    def elaborate(self, platform):
        m = Module()
        config, width = self.config, self.config.phit_width
        rest = Signal(config.flit_width - width)
        m.d.comb += self.ready.eq(self.left == 0)
        m.d.sync += self.valid.eq(self.put | (self.left != 0))
        with m.If(self.left != 0):
            m.d.sync += [
                self.left.eq(self.left - 1),
                self.phit.data.eq(rest),
                rest.eq(rest >> width),
            ]
        with m.Else():
            m.d.sync += _copy(self.phit, self.flit, self.flit.data[:width])
            m.d.sync += rest.eq(self.flit.data[width:])
            with m.If(self.put):
                m.d.sync += self.left.eq(config.phits - 1)
        return m


class PhitReceiver(wiring.Component):
    """The beginning of an input port: phits in, flits out.

    =========  ===  ===============================================================================
    ``valid``  In   of the link, like ``phit``
    ``phit``   In   of the link
    ``get``    Out  a flit comes in this cycle
    ``flit``   Out  the flit
    =========  ===  ===============================================================================

    Parameters: ``config``, a :class:`~trebuchet.cores.router.contract.LinkConfig`. A flit comes out
    in the cycle in which its last phit comes in. Fields beside ``data`` are those of the last phit.
    Reset: the next phit begins a flit.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "valid": In(1),
                "phit": In(config.phit_layout),
                "get": Out(1),
                "flit": Out(config.flit_layout),
            }
        )
        # For proofs: phits of the flit that are here; their data, the latest on top.
        self.count = Signal(range(config.phits))
        self.held = Signal(config.flit_width - config.phit_width)

    def elaborate(self, platform):
        m = Module()
        config, width = self.config, self.config.phit_width
        held = self.held
        last = self.count == config.phits - 1
        m.d.comb += self.get.eq(self.valid & last)
        m.d.comb += _copy(self.flit, self.phit, Cat(held, self.phit.data))
        with m.If(self.valid):
            m.d.sync += [
                self.count.eq(Mux(last, 0, self.count + 1)),
                held.eq(Cat(held, self.phit.data)[width:]),
            ]
        return m
