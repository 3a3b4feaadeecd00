"""What moves between routers and endpoints: flits and credits on a link.

Source: cloud-scale-acceleration, section V.B. A *message* is cut into *flits*, the unit of flow
control; a flit crosses a link in one or more *phits*, the unit of a cycle. A link has several
*virtual channels* (VCs), which share its wires and its receiver's buffer.

:class:`LinkConfig` fixes a link, :func:`LinkSignature` are its wires, seen from the sender:

==========  ===  =================================================================================
``valid``   Out  a phit moves in this cycle; there is no ready
``phit``    Out  the phit, see below; anything while ``valid`` is 0
``credit``  In   bit v, for one cycle: a flit of VC v has left the receiver's buffer
==========  ===  =================================================================================

========  ======================  ================================================================
field     width                   meaning
========  ======================  ================================================================
``data``  ``phit_width``          the flit's data, low bits first when it takes several phits
``user``  ``user_width``          goes with the flit unseen; absent if 0 wide
``dest``  ``dest_width``          endpoint that the packet is for; of a packet's head only
``vc``    ``log2(vcs)``, >= 1     virtual channel
``head``  1                       first flit of a packet
``tail``  1                       last flit of a packet; one flit may be both
========  ======================  ================================================================

Rules:

1. The phits of a flit follow one another, possibly with idle cycles between them, and all but
   ``data`` is the same in each. The first phit after reset begins a flit.
2. On one VC the flits of a packet follow one another: wormhole. Flits of different VCs interleave
   as they like.
3. The receiver has ``buffer_flits`` places, of which ``reserved`` belong to each VC and the rest to
   whoever comes first. With occ[v] the flits of VC v that were sent and whose credit has not come
   back, a flit of VC v may be sent if ``occ[v] < reserved``, or if the sum over all VCs u of
   ``max(0, occ[u] - reserved)`` is less than ``buffer_flits - vcs * reserved``.
4. A credit that is seen in one cycle may be used from the next on. ``occ`` changes with the first
   phit of a flit. A VC runs at full rate alone if it may hold as many flits as a credit takes
   cycles to come back (3 between two routers), which ``reserved`` >= 3 makes sure of.
5. A receiver never waits for one VC before it lets another's flits go.

What a router does when a sender breaks them is on the data sheet of
:class:`~trebuchet.cores.router.router.Router`.
"""

from dataclasses import dataclass

from amaranth import unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LinkConfig", "LinkSignature"]


def _check(what, value, least):
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{what} must be an integer >= {least}, not {value!r}")


@dataclass(frozen=True)
class LinkConfig:
    """Parameters of a link, the same for all links of a network.

    Attributes
    ----------
    vcs : int
        Virtual channels.
    flit_width, phit_width : int
        Bits of data in a flit; in a cycle (None: all of it), a divisor of ``flit_width``.
    dest_width : int
        Bits of an endpoint's number.
    user_width : int
        Bits beside the data of each flit (:mod:`~trebuchet.cores.router.adapter` uses them).
    buffer_flits : int
        Places of the receiver's buffer.
    reserved : int
        Places of these that belong to each VC, at least 1.
    """

    vcs: int = 2
    flit_width: int = 64
    phit_width: int | None = None
    dest_width: int = 2
    user_width: int = 0
    buffer_flits: int = 16
    reserved: int = 3

    def __post_init__(self):
        _check("Number of virtual channels", self.vcs, 1)
        _check("Flit width", self.flit_width, 1)
        if self.phit_width is None:
            object.__setattr__(self, "phit_width", self.flit_width)
        _check("Phit width", self.phit_width, 1)
        if self.flit_width % self.phit_width:
            raise ValueError(
                f"Phit width must divide the flit width of {self.flit_width} bits, "
                f"not {self.phit_width!r}"
            )
        _check("Width of a destination", self.dest_width, 1)
        _check("User width", self.user_width, 0)
        _check("Reserved flits", self.reserved, 1)
        _check("Buffer flits", self.buffer_flits, max(2, self.vcs * self.reserved))

    @property
    def phits(self):
        """Phits in a flit."""
        return self.flit_width // self.phit_width

    @property
    def shared(self):
        """Places of the buffer that belong to nobody."""
        return self.buffer_flits - self.vcs * self.reserved

    @property
    def flit_layout(self):
        """A whole flit, as it is buffered and switched."""
        return self._layout(self.flit_width)

    @property
    def phit_layout(self):
        """What crosses the link in a cycle."""
        return self._layout(self.phit_width)

    def _layout(self, width):
        fields = {"data": unsigned(width)}
        if self.user_width:
            fields["user"] = unsigned(self.user_width)
        return data.StructLayout(
            fields
            | {
                "dest": unsigned(self.dest_width),
                "vc": unsigned(max(1, (self.vcs - 1).bit_length())),
                "head": unsigned(1),
                "tail": unsigned(1),
            }
        )


def LinkSignature(config):
    """Wires of a link (see the module's docstring), from the sender's side."""
    return wiring.Signature(
        {"valid": Out(1), "phit": Out(config.phit_layout), "credit": In(config.vcs)}
    )
