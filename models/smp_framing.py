"""Naive model of what the SMP framer answers to one connection's bytes.

SMP (distributed-fpga-framework, 3.2): a message is ``type`` u8, three reserved bytes, of which the
first is 0 or, ours, names a role of the board (n is role n - 1), ``size`` u32 little-endian, then
``size`` bytes of payload; a data message's payload is an ``ID`` u32 and data. A board may know two
more types than data messages: stream messages (type 4, ours) look like them; of a configuration
message to a role the first word counts as the ID, and the answer has no result. A configuration
message that names no role is the board's, if it has firmware; of any size, and answered with ID 0.
"""

import struct

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


def data_message(ident, data, kind=TYPE_DATA, role=None):
    """A data message: operand on the way in, result on the way out.

    ``kind``: another type. ``role``: number of the role that it is for; None: the TCP port's.
    """
    named = 0 if role is None else role + 1
    return struct.pack("<BB2xII", kind, named, 4 + len(data), ident) + data


def error_message(status, ident=0):
    """The answer to a message that has no result: status, three zero bytes, ID."""
    return struct.pack("<B3xIB3xI", TYPE_RESPONSE, 8, status, ident)


def frame(stream, segment, role, types=(TYPE_DATA,), board=None):
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

    Returns
    -------
    (bytes, list of (int, bytes), bool)
        Answers; jobs as (ID, operand); whether the stream was given up for lost (``BAD_TYPE``,
        ``TOO_LARGE``, a board that closes: where the next message begins is unknown).
    """
    out, at = b"", 0
    jobs: list[tuple[int, bytes]] = []
    while len(stream) - at >= 8:
        kind, named, size = struct.unpack_from("<BB2xI", stream, at)
        if board is not None and kind == TYPE_CONFIGURATION and named == 0:
            status, close = board(size, stream[at + 8 : at + 8 + size])
            out += error_message(status)
            if close:
                return out, jobs, True
            at += 8 + size
            continue
        if kind not in types:
            return out + error_message(Status.BAD_TYPE), jobs, True
        if 8 + size > segment:
            return out + error_message(Status.TOO_LARGE), jobs, True
        if len(stream) - at < 8 + size:
            break
        payload = stream[at + 8 : at + 8 + size]
        at += 8 + size
        if size < 4:
            out += error_message(Status.BAD_LENGTH)
            continue
        (ident,) = struct.unpack_from("<I", payload)
        jobs.append((ident, payload[4:]))
        status, result = role(ident, payload[4:])
        good = status == Status.OK and kind != TYPE_CONFIGURATION
        out += data_message(ident, result) if good else error_message(status, ident)
    return out, jobs, False
