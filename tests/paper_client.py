"""A client written from distributed-fpga-framework, 3.2 and 4.2.2, alone.

Nothing of the project's own client is used here: messages are packed and read as the source has
them.
"""

import struct

from e2e_clients import read_exactly
from trebuchet.models.status import Status

__all__ = [
    "CONFIGURATION",
    "DATA",
    "RESPONSE",
    "benchmarking",
    "configuration",
    "data",
    "expect_result",
    "expect_status",
    "message",
    "receive",
]

CONFIGURATION, RESPONSE, DATA = 1, 2, 3


def message(kind, payload, size=None):
    """3.2.1: type, three reserved bytes, size of the payload."""
    return struct.pack("<BxxxI", kind, len(payload) if size is None else size) + payload


def configuration(*controls, bitstream=b"", sizes=(0, 0)):
    """3.2.2; the board chooses where input and output lie."""
    payload = struct.pack("<III", *sizes, len(controls))
    payload += b"".join(struct.pack("<III", control, 0, 0) for control in controls)
    return message(CONFIGURATION, payload + bitstream)


def data(ident, content):
    """3.2.4."""
    return message(DATA, struct.pack("<I", ident) + content)


def receive(connection):
    kind, size = struct.unpack("<BxxxI", read_exactly(connection, 8))
    return kind, read_exactly(connection, size)


def expect_status(connection, status):
    """3.2.3: the first byte of the payload; what is behind it a client of the source ignores."""
    kind, payload = receive(connection)
    assert (kind, payload[0]) == (RESPONSE, status), Status(payload[0]).name


def expect_result(connection, ident, result):
    kind, payload = receive(connection)
    assert kind == DATA
    assert struct.unpack_from("<I", payload)[0] == ident
    assert payload[4:] == result


def benchmarking(input_size, output_size, delay):
    """4.2.2: no cores, and four bytes more."""
    return message(CONFIGURATION, struct.pack("<IIII", input_size, output_size, 0, delay))
