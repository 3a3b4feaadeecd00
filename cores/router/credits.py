"""The sender's side of a link: which virtual channels may send."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CreditCounter"]


class CreditCounter(wiring.Component):
    """Rule 3 of :mod:`~trebuchet.cores.router.contract`: counts what the receiver may hold.

    ==========  ===  ==============================================================================
    ``send``    In   one-hot or 0: a flit of this VC is sent; only with its bit of ``ready``
    ``credit``  In   bit v: a place of VC v is free again
    ``ready``   Out  bit v: a flit of VC v may be sent
    ``idle``    Out  all credits are here: the receiver's buffer is empty
    ==========  ===  ==============================================================================

    Parameters: ``config``, a :class:`~trebuchet.cores.router.contract.LinkConfig`. ``ready`` comes
    from registers and counts credits up to the cycle before. A credit too many (of a VC that holds
    nothing) is ignored. Reset: the receiver is empty; both sides of a link are reset together.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "send": In(config.vcs),
                "credit": In(config.vcs),
                "ready": Out(config.vcs),
                "idle": Out(1),
            }
        )
        # No ports: for proofs.
        self.held = [Signal(range(config.buffer_flits + 1), name=f"held{v}") for v in self._vcs]
        self.lent = Signal(range(config.shared + 1))  # shared places that are held

    @property
    def _vcs(self):
        return range(self.config.vcs)

    def elaborate(self, platform):
        m = Module()
        reserved, shared = self.config.reserved, self.config.shared
        borrows, repays = [], []
        for v in self._vcs:
            held, up, down = self.held[v], Signal(name=f"up{v}"), Signal(name=f"down{v}")
            credit = self.credit[v] & (held != 0)
            m.d.comb += [up.eq(self.send[v] & ~credit), down.eq(credit & ~self.send[v])]
            with m.If(up | down):
                m.d.sync += held.eq(held + Mux(up, 1, -1))
            borrows.append(up & (held >= reserved))
            repays.append(down & (held > reserved))
            if shared:
                m.d.comb += self.ready[v].eq((held < reserved) | (self.lent != shared))
            else:
                m.d.comb += self.ready[v].eq(held < reserved)
        if shared:
            m.d.sync += self.lent.eq(self.lent + Cat(borrows).any() - sum(repays[1:], repays[0]))
        m.d.comb += self.idle.eq(~Cat(self.held).any())
        return m
