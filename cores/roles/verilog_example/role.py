"""Adler-32 in plain Verilog (``adler32.v``) as a role; ``models/roles.py`` is its model."""

from pathlib import Path

from ...csr import RegisterBlock, counter
from ..verilog import VerilogRole

__all__ = ["ADLER_BLOCK", "AdlerRole"]

ADLER_BLOCK = RegisterBlock(
    "adler32", (counter("bytes", "bytes summed up"),), "the Adler-32 role's own counter"
)


class AdlerRole(VerilogRole):
    """Answers with the Adler-32 checksum of the operand (RFC 1950, 8.2), little-endian, 4 bytes.

    Any length; that of nothing is 1. Less than 4 bytes of room is answered ``NO_ROOM``, another
    kind of job than ``DATA`` ``BAD_TYPE``. Parameters: ``width``, ``tag_width`` of the memory port.

    One job at a time, one byte a cycle and a memory latency a beat: written to be read, not to be
    fast. Bound: the length plus a memory latency a beat. Reset: abandons the job.
    """

    def __init__(self, width=32, tag_width=2):
        path = Path(__file__).with_name("adler32.v")
        parameters = {"WIDTH": width, "TAGS": max(1, tag_width)}
        super().__init__(path, "adler32_role", width, tag_width, ADLER_BLOCK, parameters)
