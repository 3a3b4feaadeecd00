"""Naive model of what the SMP framer answers to one connection's bytes.

SMP (distributed-fpga-framework, 3.2): a message is ``type`` u8, three reserved bytes, of which the
first is 0 or, ours, names a role of the board (n is role n - 1), ``size`` u32 little-endian, then
``size`` bytes of payload; a data message's payload is an ``ID`` u32 and data. A board may know two
more types than data messages: stream messages (type 4, ours) look like them; of a configuration
message to a role the first word counts as the ID, and the answer has no result. A configuration
message that names no role is the board's, if it has firmware; of any size, and answered with ID 0.

The other two reserved bytes carry an epoch (:mod:`~.epoch`), low byte first. While a board's guard
is on it refuses messages with another epoch than its lease's, and all while it has none.
"""

import struct

from .epoch import EPOCH_BITS, NO_EPOCH
from .status import Status

__all__ = [
    "MESSAGE_HEADER",
    "TYPE_CONFIGURATION",
    "TYPE_DATA",
    "TYPE_RESPONSE",
    "TYPE_STREAM",
    "data_message",
    "error_message",
    "frame",
]

TYPE_CONFIGURATION = 1
TYPE_RESPONSE = 2
TYPE_DATA = 3
TYPE_STREAM = 4
#: Bytes of a data message before its operand: type, reserved bytes, size, ID.
MESSAGE_HEADER = 12


def data_message(ident, data, kind=TYPE_DATA, role=None, epoch=NO_EPOCH):
    """A data message: operand on the way in, result on the way out.

    ``kind``: another type. ``role``: number of the role that it is for; None: the TCP port's.
    ``epoch``: that of the sender's lease.
    """
    named = 0 if role is None else role + 1
    if not 0 <= epoch < 1 << EPOCH_BITS:
        raise ValueError(f"Epoch must be 0 to {(1 << EPOCH_BITS) - 1}, not {epoch!r}")
    return struct.pack("<BBHII", kind, named, epoch, 4 + len(data), ident) + data


def error_message(status, ident=0):
    """The answer to a message that has no result: status, three zero bytes, ID."""
    return struct.pack("<B3xIB3xI", TYPE_RESPONSE, 8, status, ident)


def frame(stream, segment, role, types=(TYPE_DATA,), board=None, lease=None):
    """All that the framer sends for the bytes of a connection, and what it told the role.

    Parameters
    ----------
    stream : bytes
        Everything the peer sends before its FIN.
    segment : int
        Bytes of the receive ring; a message with its header must fit.
    role : callable
        ``role(ident, data)`` gives ``(status, result)``.
    types : tuple of int
        Types of message that make a job.
    board : callable or None
        ``board(size, payload)`` gives ``(status, close)`` for a configuration message that names no
        role: bytes of its payload, and what came of it. None: there is no firmware.
    lease : callable or None
        ``lease(n)`` gives the epoch of the board's lease when message ``n``, counted from 0, is
        judged, or None if its guard is off then; None: it is off all the time.

    Returns
    -------
    (bytes, list of (int, bytes), bool)
        Answers; jobs as (ID, operand); whether the stream was given up for lost (``BAD_TYPE``,
        ``TOO_LARGE``, a board that closes: where the next message begins is unknown). A message
        that is both too large and of another epoch is answered ``STALE``.
    """
    out, at, number = b"", 0, -1
    jobs: list[tuple[int, bytes]] = []
    while len(stream) - at >= 8:
        kind, named, epoch, size = struct.unpack_from("<BBHI", stream, at)
        number += 1
        granted = None if lease is None else lease(number)
        stale = granted is not None and (epoch == NO_EPOCH or epoch != granted)
        to_board = board is not None and kind == TYPE_CONFIGURATION and named == 0
        if to_board and not stale:
            status, close = board(size, stream[at + 8 : at + 8 + size])
            out += error_message(status)
            if close:
                return out, jobs, True
            at += 8 + size
            continue
        if kind not in types and not to_board:
            return out + error_message(Status.BAD_TYPE), jobs, True
        if 8 + size > segment:
            return out + error_message(Status.STALE if stale else Status.TOO_LARGE), jobs, True
        if len(stream) - at < 8 + size:
            break
        payload = stream[at + 8 : at + 8 + size]
        at += 8 + size
        if size < 4:
            out += error_message(Status.BAD_LENGTH)
            continue
        (ident,) = struct.unpack_from("<I", payload)
        if stale:
            out += error_message(Status.STALE, 0 if to_board else ident)
            continue
        jobs.append((ident, payload[4:]))
        status, result = role(ident, payload[4:])
        good = status == Status.OK and kind != TYPE_CONFIGURATION
        out += data_message(ident, result) if good else error_message(status, ident)
    return out, jobs, False
