"""What a request head asks for: the strict parser of the fast path (RFC 9112, 9110, 3986).

The rule: ``OK`` only for a head of which every byte has been validated and every field that
matters understood; what is legal but unusual is the firmware's (``FIRMWARE``); everything else has
a prepared response, after which the connection closes and nothing more of it is parsed.

What is wrong with a head has an order, so that exactly one verdict is right. A line's characters
and structure count at the first byte that cannot continue it; a field's value counts when its
line ends; what needs the whole head (no Host, Content-Length beside Transfer-Encoding, the version)
counts when the head ends, and not if the limit of heads cuts it. The first of these that applies
is the verdict:

======================== ==========================================================================
BAD_REQUEST              syntax; Host missing in HTTP/1.1, invalid, empty or twice; Content-Length
                         invalid (18 digits at most) or twice, or beside Transfer-Encoding;
                         Transfer-Encoding in HTTP/1.0, twice, with an empty element, or without a
                         final, single chunked;
                         ``*`` without OPTIONS, a target that begins with a digit or ``[`` without
                         CONNECT (these two count when the request line ends)
VERSION_NOT_SUPPORTED    a major version other than 1. Host is then not asked for
URI_TOO_LONG             a target beyond its limit, or that the head's limit cuts
FIELDS_TOO_LARGE         a head beyond its limit
NOT_IMPLEMENTED          a method that RFC 9110 and RFC 5789 do not define; a transfer coding before
                         the final chunked
OPTIONS                  OPTIONS of any target
METHOD_NOT_ALLOWED       another method than GET and HEAD, without content or with an Expect field
EXPECTATION_FAILED       Expect other than 100-continue; that one, with content, in HTTP/1.1
FIRMWARE                 content to come (for any known method); a path beyond its limit, or with
                         ``%``, ``//`` or ``/.``; absolute form; Range; If-Match; If-None-Match
                         twice, or with anything but one of our tags or ``*``
OK                       look the path up
======================== ==========================================================================
"""

import enum
import re
import zlib
from typing import NamedTuple

from . import grammar
from .limits import LIMITS

__all__ = ["Content", "Fields", "Request", "Verdict", "parse_fields", "parse_head", "trim"]


class Verdict(enum.IntEnum):
    """What is answered; numbers are those of the gateware. The last four are no parser's."""

    OK = 0
    FIRMWARE = 1
    BAD_REQUEST = 2
    METHOD_NOT_ALLOWED = 3
    URI_TOO_LONG = 4
    EXPECTATION_FAILED = 5
    FIELDS_TOO_LARGE = 6
    NOT_IMPLEMENTED = 7
    VERSION_NOT_SUPPORTED = 8
    OPTIONS = 9
    NOT_FOUND = 10
    TIMEOUT = 11
    CONTENT_TOO_LARGE = 12
    UNAVAILABLE = 13


class Content(enum.IntEnum):
    """Framing of a request's content (RFC 9112, 6.3)."""

    NONE = 0  # neither field
    ZERO = 1  # Content-Length: 0
    LENGTH = 2  # another Content-Length
    CHUNKED = 3


class Request(NamedTuple):
    """What is known of a head.

    ``head`` holds for every verdict. The fields after it hold for ``OK``, and are 0, False and
    None otherwise: a rejected head has no path, and the firmware parses for itself.
    """

    verdict: Verdict
    #: The method is HEAD, followed by a space: the response has no content, whatever it is.
    head: bool = False
    #: The connection closes after the response: ``Connection: close``, or HTTP/1.0.
    close: bool = False
    #: The version is HTTP/1.0.
    http10: bool = False
    #: Where the path begins in the head, and its length; a query does not belong to it.
    path_offset: int = 0
    path_length: int = 0
    #: CRC-32 of the path's bytes, that of IEEE 802.3 and ``zlib.crc32``: polynomial 0xEDB88320
    #: reflected, preset to ones, complemented (``CRC32`` of ``cores/crc.py``).
    path_crc: int = 0
    #: If-None-Match is one tag of ours: its 64 bits.
    tag: int | None = None
    #: If-None-Match is ``*``.
    any_tag: bool = False


_SERVED = {b"GET", b"HEAD"}
_REFUSED = {b"POST", b"PUT", b"DELETE", b"CONNECT", b"TRACE", b"PATCH"}
_ONCE = (b"host", b"content-length", b"transfer-encoding")


class Fields(NamedTuple):
    """The fields that decide, of lines that are valid by themselves."""

    has_host: bool
    #: Value of Content-Length.
    length: int | None
    #: Value of Transfer-Encoding.
    codings: bytes | None
    close: bool
    expect: bytes | None
    none_match: list[bytes]
    #: A field that only the firmware understands is there.
    unusual: bool

    @property
    def has_content(self):
        """Whether content follows the head."""
        return self.content in (Content.LENGTH, Content.CHUNKED)

    @property
    def content(self):
        """Framing of the content, if only one of the two fields is there."""
        if self.codings is not None:
            return Content.CHUNKED
        if self.length is None:
            return Content.NONE
        return Content.LENGTH if self.length else Content.ZERO


def trim(value):
    """Remove the optional whitespace around a value or an element (RFC 9110, 5.6.3)."""
    return value.strip(b" \t")


def _elements(value):
    return [trim(element).lower() for element in value.split(b",")]


def _codings_verdict(codings):
    """Return why a Transfer-Encoding is refused, or None (RFC 9112, 6.1, 6.3, 7.1)."""
    *before, last = _elements(codings)
    if last != b"chunked" or b"" in before or b"chunked" in before:
        return Verdict.BAD_REQUEST
    return Verdict.NOT_IMPLEMENTED if before else None


def _is_valid(name, value):
    """Whether a value is one that its field may have; name in lower case."""
    if name == b"host":
        return grammar.HOST.fullmatch(value) is not None
    if name == b"content-length":
        return grammar.CONTENT_LENGTH.fullmatch(value) is not None
    return name != b"transfer-encoding" or _codings_verdict(value) is not Verdict.BAD_REQUEST


def parse_fields(lines):
    """Validate field lines, without their CR LF, and collect what decides.

    Returns
    -------
    Fields or None
        None: a line is wrong, or there twice where only one may be.
    """
    seen: dict[bytes, list[bytes]] = {}
    for line in lines:
        match = grammar.FIELD.fullmatch(line)
        if match is None:
            return None
        name, value = match[1].lower(), trim(match[2])
        if not _is_valid(name, value) or (name in _ONCE and name in seen):
            return None
        seen.setdefault(name, []).append(value)
    expect = seen.get(b"expect")
    return Fields(
        has_host=b"host" in seen,
        length=int(seen[b"content-length"][0]) if b"content-length" in seen else None,
        codings=seen.get(b"transfer-encoding", [None])[0],
        close=any(b"close" in _elements(value) for value in seen.get(b"connection", [])),
        expect=None if expect is None else b", ".join(expect).lower(),
        none_match=seen.get(b"if-none-match", []),
        unusual=bool({b"range", b"if-match"} & seen.keys()),
    )


def _form_is_valid(method, target):
    """Whether a method may have a target of this form (RFC 9112, 3.2)."""
    if target == b"*":
        return method == b"OPTIONS"
    return target.startswith(b"/") or target[:1].isalpha() or method == b"CONNECT"


def _is_usual(path, limits):
    plain = path.startswith(b"/") and re.search(rb"%|//|/\.", path) is None
    return plain and len(path) <= limits.path


def _none_match(values):
    """Return ``(understood, tag, any_tag)`` of the lines of If-None-Match."""
    if not values:
        return True, None, False
    if values == [b"*"]:
        return True, None, True
    match = grammar.TAG.fullmatch(values[0])
    if match is None or len(values) > 1:
        return False, None, False
    return True, int(match[1], 16), False


def _judge_refused(method, fields):
    """Return the verdict of a method other than GET and HEAD."""
    if method == b"OPTIONS":
        return Verdict.OPTIONS
    if method not in _REFUSED:
        return Verdict.NOT_IMPLEMENTED
    waits = fields.has_content and fields.expect is None
    return Verdict.FIRMWARE if waits else Verdict.METHOD_NOT_ALLOWED


def _judge(method, target, http10, fields, limits):
    """Return the verdict of a head whose every line is valid and whose major version is 1."""
    if not (fields.has_host or http10):
        return Verdict.BAD_REQUEST
    if fields.codings is not None and (fields.length is not None or http10):
        return Verdict.BAD_REQUEST
    if len(target) > limits.target:
        return Verdict.URI_TOO_LONG
    if fields.codings is not None and _codings_verdict(fields.codings) is not None:
        return Verdict.NOT_IMPLEMENTED
    if method not in _SERVED:
        return _judge_refused(method, fields)
    content = fields.has_content
    if fields.expect is not None and (fields.expect != b"100-continue" or (content and not http10)):
        return Verdict.EXPECTATION_FAILED
    usual = _is_usual(target.partition(b"?")[0], limits) and not fields.unusual
    usual = usual and _none_match(fields.none_match)[0] and not content
    return Verdict.OK if usual else Verdict.FIRMWARE


def _unfinished(lines, rest, limits):
    """Return the verdict of a head that its limit cuts in the line ``rest``."""
    if not lines:
        if not grammar.begins_request_line(rest):
            return Verdict.BAD_REQUEST
        words = rest.split(b" ")
        in_target = len(words) == 2
    else:
        match = grammar.REQUEST_LINE.fullmatch(lines[0])
        valid = match is not None and _form_is_valid(match[1], match[2])
        valid = valid and parse_fields(lines[1:]) is not None and grammar.begins_field(rest)
        if not valid:
            return Verdict.BAD_REQUEST
        words = lines[0].split(b" ")
        in_target = False
    too_long = len(words) > 1 and len(words[1]) > limits.target
    return Verdict.URI_TOO_LONG if in_target or too_long else Verdict.FIELDS_TOO_LARGE


def parse_head(head, limits=LIMITS):
    """Parse a request head as :func:`.head.scan` found it.

    Parameters
    ----------
    head : bytes
        From the first byte of the request line to the head's end, both included. One without an
        end, or with a broken line, is parsed as far as it goes; without an end it counts as cut
        by the limit of heads.
    limits : Limits

    Returns
    -------
    Request
    """
    is_head = head.startswith(b"HEAD ")
    *lines, rest = head.split(b"\r\n")
    if any(b"\n" in line or b"\r" in line[:-1] for line in (*lines, rest)):
        return Request(Verdict.BAD_REQUEST, is_head)
    if any(line.endswith(b"\r") for line in lines) or lines[:1] == [b""]:
        return Request(Verdict.BAD_REQUEST, is_head)
    if rest or lines[-1:] != [b""]:
        return Request(_unfinished(lines, rest, limits), is_head)
    match = grammar.REQUEST_LINE.fullmatch(lines[0])
    fields = parse_fields(lines[1:-1])
    if match is None or fields is None or not _form_is_valid(match[1], match[2]):
        return Request(Verdict.BAD_REQUEST, is_head)
    method, target, major, minor = match.groups()
    if major != b"1":
        return Request(Verdict.VERSION_NOT_SUPPORTED, is_head)
    http10 = minor == b"0"
    verdict = _judge(method, target, http10, fields, limits)
    if verdict is not Verdict.OK:
        return Request(verdict, is_head)
    path = target.partition(b"?")[0]
    _, tag, any_tag = _none_match(fields.none_match)
    return Request(
        verdict,
        is_head,
        close=fields.close or http10,
        http10=http10,
        path_offset=len(method) + 1,
        path_length=len(path),
        path_crc=zlib.crc32(path),
        tag=tag,
        any_tag=any_tag,
    )
