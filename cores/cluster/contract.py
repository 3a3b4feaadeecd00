"""What boards send each other: calls of roles, and their replies.

A *call* is a job (:mod:`~trebuchet.cores.roles.contract`) that another board's role does: its
operand goes there, its result comes back. Both are cut into messages of at most :data:`CHUNK` bytes
behind a header, so that each fits a frame of LTL, and messages of several boards take turns:

==========  =====  =================================================================================
field       width  meaning, lowest bits first
==========  =====  =================================================================================
``peer``    8      the other board, by the number that it has on this one; the sender's number for
                   the receiver until LTL has it, then the receiver's number for the sender
``last``    1      last message of this operand or result
``kind``    2      of the job; 0 in a reply
``role``    5      which role the job is for; 0 in a reply. Boards that share jobs have the same
                   roles by the same numbers
``status``  8      of the answer; 0 in a call
``number``  8      of the call, given by the caller; its reply has it again
``offset``  16     where the bytes belong in the operand or result, in units of 16 bytes. 16 bits
                   after it are 0
==========  =====  =================================================================================

Calls go on virtual channel :data:`CALLS`, replies on :data:`REPLIES`: a call may wait for a role,
and a reply never waits for a call, which closes the circle in which both could wait.

LTL has for each peer p and channel v the entry ``2 * p + v`` of its send and of its receive table
(:func:`entry`). Peers are numbered from 1; each board numbers its own.
"""

from amaranth import unsigned
from amaranth.lib import data

from ..ltl.config import LtlConfig
from ..roles.contract import ROLE_WIDTH, STATUS_WIDTH, JobKind
from ..router.adapter import user_width
from ..router.contract import LinkConfig
from ..tcp.service import LENGTH_WIDTH

__all__ = [
    "CALLS",
    "CHUNK",
    "HEADER_BYTES",
    "MAX_PEERS",
    "REPLIES",
    "CallLayout",
    "HeaderLayout",
    "check_peers",
    "entry",
    "link_config",
    "ltl_config",
]

CALLS, REPLIES = 0, 1
#: Bytes of operand or result in a message; a multiple of 16. With its header a message fills 254 of
#: the 256 words of a slot in LTL's store: one of 1,024 bytes would take two such slots.
CHUNK = 1008
#: Messages of a peer that may wait on a virtual channel; LTL's credit after reset.
WINDOW = 4
HEADER_BYTES = 8
MAX_PEERS = 15

HeaderLayout = data.StructLayout(
    {
        "peer": unsigned(8),
        "last": unsigned(1),
        "kind": JobKind,
        "role": unsigned(ROLE_WIDTH),
        "status": unsigned(STATUS_WIDTH),
        "number": unsigned(8),
        "offset": unsigned(16),
        "zeros": unsigned(16),
    }
)

#: A whole operand or result that is to be sent.
CallLayout = data.StructLayout(
    {
        "peer": unsigned(8),
        "kind": JobKind,
        "role": unsigned(ROLE_WIDTH),
        "status": unsigned(STATUS_WIDTH),
        "number": unsigned(8),
        "length": unsigned(LENGTH_WIDTH),
    }
)


def check_peers(peers):
    """The number of peers if it is one; else a :class:`ValueError`."""
    if not isinstance(peers, int) or not 1 <= peers <= MAX_PEERS:
        raise ValueError(f"Number of peers must be 1 to {MAX_PEERS}, not {peers!r}")
    return peers


def entry(peer, vc):
    """LTL's table entry, send and receive, of a peer's virtual channel."""
    return 2 * peer + vc


def link_config(width):
    """Links of the router: each VC has as many places as a credit takes cycles between adapters."""
    return LinkConfig(
        vcs=2, flit_width=width, user_width=user_width(width), buffer_flits=8, reserved=4
    )


def ltl_config(width, peers):
    """An LTL engine with room for all that every peer may send and be sent at a time."""
    beats = -(-(CHUNK + HEADER_BYTES) * 8 // width)
    return LtlConfig(
        width=width,
        connections=2 * (peers + 1),
        vcs=2,
        slots=2 * WINDOW * peers,
        window=WINDOW,
        max_message=CHUNK + HEADER_BYTES,
        buffer_beats=1 << (WINDOW * peers * beats - 1).bit_length(),
    )
