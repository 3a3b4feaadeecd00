"""The content of a request, which the slow path discards, byte by byte.

Each reader is fed single bytes and says whether it has seen the end, that the content is invalid,
or that it is too large. Chunks as RFC 9112, 7.1, strictly: lines end with CR LF.
"""

import enum
import re

from . import grammar

__all__ = ["Chunked", "Progress", "Sized"]


class Progress(enum.Enum):
    """What a reader says after a byte."""

    MORE = "more"
    DONE = "done"
    INVALID = "invalid"
    TOO_LARGE = "too large"


class Sized:
    """Content of a given length."""

    def __init__(self, length, limits):
        self.left = length
        self.first = Progress.TOO_LARGE if length > limits.content else Progress.MORE

    def feed(self, byte):
        """Discard a byte."""
        self.left -= 1
        return Progress.DONE if self.left == 0 else Progress.MORE


_QUOTED = rb'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*"'
_TOKEN = grammar.TOKEN.pattern
#: RFC 9112, 7.1, 7.1.1: size and extensions, which are ignored.
CHUNK = re.compile(
    rb"([0-9A-Fa-f]{1,8})"
    rb"(?:[ \t]*;[ \t]*" + _TOKEN + rb"(?:[ \t]*=[ \t]*(?:" + _TOKEN + rb"|" + _QUOTED + rb"))?)*"
)


class Chunked:
    """Content in chunks, with trailer fields, which are ignored."""

    first = Progress.MORE

    def __init__(self, limits):
        self.limits = limits
        self.line = b""
        self.total = 0
        self.trailers = 0
        self.left = 0  # bytes of the chunk's data
        self.expect = self._size

    def feed(self, byte):
        """Discard a byte."""
        if self.left:
            self.left -= 1
            return Progress.MORE
        self.line += bytes([byte])
        if self.line.endswith(b"\n"):
            line, self.line = self.line, b""
            if not line.endswith(b"\r\n"):
                return Progress.INVALID
            return self.expect(line[:-2])
        if b"\r" in self.line[:-1] or len(self.line) > self.limits.chunk_line:
            return Progress.INVALID
        return (
            Progress.INVALID if self.expect == self._end and self.line != b"\r" else Progress.MORE
        )

    def _size(self, line):
        match = CHUNK.fullmatch(line)
        if match is None:
            return Progress.INVALID
        self.left = int(match[1], 16)
        self.total += self.left
        self.expect = self._end if self.left else self._trailer
        return Progress.TOO_LARGE if self.total > self.limits.content else Progress.MORE

    def _end(self, line):
        self.expect = self._size
        return Progress.MORE

    def _trailer(self, line):
        if line == b"":
            return Progress.DONE
        self.trailers += len(line) + 2
        if grammar.FIELD.fullmatch(line) is None or self.trailers > self.limits.trailers:
            return Progress.INVALID
        return Progress.MORE
