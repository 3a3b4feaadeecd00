"""Prepared responses: what lies in memory and is sent as it is.

A response has no Date: the server has no clock (RFC 9110, 6.6.1), so its bytes are constants. An
object is stored as ``[header][content]``, in one piece, so that one descriptor sends it; its
content begins at a multiple of 512 bytes, a sector of a drive, and its header ends right before it.
"""

from typing import NamedTuple

from .request import Verdict

__all__ = ["ALLOW", "HEADER_ROOM", "PREPARED", "Object", "Prepared", "ending", "prepared"]

#: Value of Allow; all targets have the same methods.
ALLOW = b"GET, HEAD, OPTIONS"
#: Bytes before an object's content in which its header ends.
HEADER_ROOM = 512


def ending(close):
    """Return the last lines of a header: ``Connection: close`` if so, and the empty line."""
    return (b"Connection: close\r\n" if close else b"") + b"\r\n"


class Prepared(NamedTuple):
    """A response: header, with the empty line, and content."""

    header: bytes
    content: bytes = b""

    def sent(self, head=False):
        """Return the bytes sent; ``head``: in response to HEAD."""
        return self.header if head else self.header + self.content


def _error(status, reason, explanation, *fields, close=True):
    content = f"{status} {reason}: {explanation}\n".encode()
    lines = [f"HTTP/1.1 {status} {reason}", *fields]
    lines += ["Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(content)}"]
    header = "".join(f"{line}\r\n" for line in lines).encode()
    return Prepared(header + ending(close), content)


def _not_found(close):
    return _error(404, "Not Found", "there is nothing at this address", close=close)


_ALLOW_LINE = f"Allow: {ALLOW.decode()}"

#: Responses that close the connection, by verdict.
PREPARED = {
    Verdict.BAD_REQUEST: _error(400, "Bad Request", "this is not a valid HTTP/1.1 request"),
    Verdict.NOT_FOUND: _not_found(close=True),
    Verdict.METHOD_NOT_ALLOWED: _error(
        405, "Method Not Allowed", "only GET and HEAD are", _ALLOW_LINE
    ),
    Verdict.TIMEOUT: _error(408, "Request Timeout", "the request did not arrive in time"),
    Verdict.CONTENT_TOO_LARGE: _error(413, "Content Too Large", "no request needs content here"),
    Verdict.URI_TOO_LONG: _error(414, "URI Too Long", "the request target is too long"),
    Verdict.EXPECTATION_FAILED: _error(417, "Expectation Failed", "no expectation can be met"),
    Verdict.FIELDS_TOO_LARGE: _error(
        431, "Request Header Fields Too Large", "the request head is too long"
    ),
    Verdict.NOT_IMPLEMENTED: _error(501, "Not Implemented", "unknown method or transfer coding"),
    Verdict.UNAVAILABLE: _error(503, "Service Unavailable", "the server is busy", "Retry-After: 1"),
    Verdict.VERSION_NOT_SUPPORTED: _error(
        505, "HTTP Version Not Supported", "this server speaks HTTP/1.1"
    ),
    Verdict.OPTIONS: Prepared(
        b"HTTP/1.1 204 No Content\r\nAllow: " + ALLOW + b"\r\n" + ending(close=True)
    ),
}
_NOT_FOUND_OPEN = _not_found(close=False)


def prepared(verdict, close=True):
    """Return the response to a verdict; only that of NOT_FOUND exists without ``close``."""
    if not close and verdict is Verdict.NOT_FOUND:
        return _NOT_FOUND_OPEN
    return PREPARED[verdict]


class Object(NamedTuple):
    """A file as it is served.

    ``tag`` is the 64 bits of its strong entity tag; it differs whenever the content does.
    """

    content: bytes
    media_type: bytes
    tag: int

    @property
    def etag(self):
        """The entity tag, as it stands in fields."""
        return b'"%016x"' % self.tag

    def fields(self, length, *more):
        """Return the field lines of a response with ``length`` bytes of content."""
        lines = [b"Content-Type: " + self.media_type, b"Content-Length: %d" % length]
        lines += [b"ETag: " + self.etag, *more]
        return b"".join(line + b"\r\n" for line in lines)

    def found(self, close=False):
        """Return the response 200."""
        header = b"HTTP/1.1 200 OK\r\n" + self.fields(len(self.content))
        return Prepared(header + ending(close), self.content)

    def not_modified(self, close=False):
        """Return the response 304 (RFC 9110, 15.4.5): no content, and no length of one."""
        header = b"HTTP/1.1 304 Not Modified\r\nETag: " + self.etag + b"\r\n"
        return Prepared(header + ending(close))

    def stored(self, close=False):
        """Return the object as it lies in memory, and where its header begins in it."""
        response = self.found(close)
        begin = HEADER_ROOM - len(response.header)
        if begin < 0:
            raise ValueError(
                f"A header must be at most {HEADER_ROOM} bytes, not {len(response.header)}: "
                f"shorten the media type {self.media_type!r}"
            )
        return bytes(begin) + response.header + response.content, begin
