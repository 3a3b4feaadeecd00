"""What the web service must know of a session."""

from amaranth import Cat, Value
from amaranth.lib import data

from ..memory import ADDR_WIDTH
from ..tcp.service import POSITION_WIDTH, TX_PER_SESSION
from .answer import PIECE
from .scan import ScanState

__all__ = ["PIECE_LOG2", "SCANNED", "record_layout", "rest_address"]

#: What a record says of bytes that were inspected.
SCANNED = ("scanned", "scan", "complete")
PIECE_LOG2 = PIECE.bit_length() - 1


def record_layout(segment_log2, head, desk=False):
    """A session's record: rings of 2**``segment_log2`` bytes, heads of ``head``, firmware or not.

    While ``rest`` is not 0 the fields of :data:`SCANNED` are the low bits of :func:`rest_address`.
    """
    count = segment_log2 + 1  # bits of a number of bytes in a ring
    scanned = {
        "scanned": range(head + 3),  # bytes from `head` on that were inspected
        "scan": ScanState,
        "complete": 1,  # they have the head's end
    }
    bits = data.StructLayout(scanned).size
    return data.StructLayout(
        {
            "base": ADDR_WIDTH - segment_log2,
            "head": POSITION_WIDTH,  # of the first byte that is not consumed
            "latest": count,  # low bits of the position after the newest byte
            **scanned,
            "busy": 1,  # a head is under way
            "out": range(TX_PER_SESSION + 1),  # descriptors that are not answered
            "rest": 32,  # bytes of an object that are still to be posted ...
            "rest_addr": ADDR_WIDTH - bits,  # ... from here on ...
            "rest_close": 1,  # ... and then FIN
            "rest_epoch": 1,  # of the image that it lies in
            "eof": 1,
            "closing": 1,  # FIN was posted; what comes is ignored
            "dead": 1,  # CLOSED has come
            "old": 1,  # the last sweep found its head incomplete
            "late": 1,  # two sweeps in a row did
            **({"slow": 1} if desk else {}),  # what comes is firmware's
        }
    )


def rest_address(record):
    """Where the rest is, if there is one; then no head is looked at, and nothing was inspected."""
    return Cat(*(Value.cast(record[name]) for name in (*SCANNED, "rest_addr")))
