"""A service with one fixed answer: the gateware side of the HTTP-like transaction benchmark."""

from amaranth.lib.wiring import In

from ..memory import ADDR_WIDTH
from ..tcp.service import LENGTH_WIDTH
from .discard import SingleReplyService

__all__ = ["Responder"]


class Responder(SingleReplyService):
    """Answers the first bytes of each connection with a fixed object, and closes.

    What the peer sends is consumed unread, before and after. A peer that closes without having sent
    anything gets a close and no object.

    ===========  ====  ==========================================================================
    member       dir   meaning
    ===========  ====  ==========================================================================
    ``addr``     In    address of the object; changes take effect for later answers
    ``length``   In    its bytes; 0 closes without an object
    ===========  ====  ==========================================================================

    Other ports, parameters and timing: :class:`~.discard.SingleReplyService`.
    """

    def __init__(self, sessions, rest=False):
        super().__init__(sessions, {"addr": In(ADDR_WIDTH), "length": In(LENGTH_WIDTH)}, rest)

    def reply(self):
        return 1, self.addr, self.length
