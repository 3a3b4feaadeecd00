"""The slow path, which is the firmware's: requests that are legal but unusual.

A request that comes here passed :func:`.request.parse_head`, so its lines are valid. Its path is
decoded once, segment by segment; empty segments are dropped and dot segments removed (RFC 3986,
5.2.4), and the result is looked up as the names of files are: octets of UTF-8.
"""

import re
from typing import NamedTuple

from . import grammar
from .request import Verdict, parse_fields, trim
from .response import Prepared, ending, prepared

__all__ = ["Response", "canonical", "respond"]


class Response(NamedTuple):
    """A response of the slow path, and whether it ends the connection."""

    prepared: Prepared
    close: bool


def _refused(verdict):
    return Response(prepared(verdict), True)


_ABSOLUTE = re.compile(rb"(?i:http)://([^/?]*)(/[^?]*)?(?:\?.*)?")


def _path(target):
    """Return the path of a target, still encoded; None if the target is invalid."""
    if target.startswith(b"/"):
        return target.partition(b"?")[0]
    match = _ABSOLUTE.fullmatch(target)
    if match is None or grammar.HOST.fullmatch(match[1]) is None or match[1].startswith(b":"):
        return None
    return match[2] or b"/"


def canonical(path):
    """Return the name that an encoded path is looked up by.

    Returns
    -------
    bytes or None
        With a slash at its end if the path names a folder. None: the path has a NUL (400).
        A slash that was encoded stays encoded, as no name contains one.
    """
    out: list[bytes] = []
    folder = False
    for segment in path.split(b"/")[1:]:
        octets = re.sub(rb"%(..)", lambda m: bytes.fromhex(m[1].decode()), segment)
        if b"\0" in octets:
            return None
        folder = octets in (b"", b".", b"..")
        if octets == b"..":
            out = out[:-1]
        elif not folder:
            out.append(octets.replace(b"/", b"%2F"))
    return b"/" + b"/".join(out) + (b"/" if folder and out else b"")


_MEMBER = re.compile(rb'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')


def _tags(values):
    """Return the entity tags of a list as (weak, tag); None if it is invalid or ``*``."""
    out = []
    rest = b",".join(values)
    while rest := rest.lstrip(b" \t,"):
        match = _MEMBER.match(rest)
        if match is None:
            return None
        out.append((match[1] is not None, match[2]))
        rest = rest[match.end() :].lstrip(b" \t")
        if rest and not rest.startswith(b","):
            return None
    return out


def _values(fields, name):
    return [value for key, value in fields if key == name]


def _if_match(fields, etag):
    """Whether the tag matches (RFC 9110, 13.1.1): strong. An invalid list matches nothing."""
    values = _values(fields, b"if-match")
    if not values or values == [b"*"]:
        return True
    return (False, etag) in (_tags(values) or [])


def _if_none_match(fields, etag):
    """Whether a tag matches (RFC 9110, 13.1.2): weak. An invalid list matches nothing."""
    values = _values(fields, b"if-none-match")
    return values == [b"*"] or etag in [tag for _, tag in _tags(values) or []]


def _range(fields, size, etag):
    """Return (first, last) of a range to serve, ``None`` for all, ``()`` if it is unsatisfiable.

    RFC 9110, 14.1.2, 14.2, 13.1.5: one range of bytes. Several, an invalid one, and one of which
    If-Range is not our tag are ignored.
    """
    values = _values(fields, b"range")
    condition = _values(fields, b"if-range")
    if len(values) != 1 or (condition and condition != [etag]):
        return None
    match = re.fullmatch(rb"(?i:bytes)=[ \t]*([0-9]*)-([0-9]*)[ \t]*", values[0])
    if match is None or match.groups() == (b"", b""):
        return None
    first, last = match.groups()
    if first == b"":
        count = min(_number(last), size)
        return (size - count, size - 1) if count else ()
    begin, end = _number(first), _number(last) if last else size - 1
    if last and end < begin:
        return None
    return (begin, min(end, size - 1)) if begin < size else ()


def _number(digits):
    digits = digits.lstrip(b"0")
    return 10**18 if len(digits) > 18 else int(digits or b"0")


def _partial(found, part, close):
    """Return 206 or 416 (RFC 9110, 15.3.7, 15.5.17)."""
    size = len(found.content)
    if not part:
        header = b"HTTP/1.1 416 Range Not Satisfiable\r\n"
        header += b"Content-Range: bytes */%d\r\nContent-Length: 0\r\n" % size
        return Prepared(header + ending(close))
    first, last = part
    content = found.content[first : last + 1]
    header = b"HTTP/1.1 206 Partial Content\r\n"
    header += found.fields(len(content), b"Content-Range: bytes %d-%d/%d" % (first, last, size))
    return Prepared(header + ending(close), content)


def respond(head, find):
    """Answer a request whose verdict is FIRMWARE and whose content has been discarded.

    Parameters
    ----------
    head : bytes
        The request head.
    find : callable
        ``find(name)`` gives the :class:`.response.Object` of a canonical name, or None.

    Returns
    -------
    Response
    """
    lines = head.split(b"\r\n")[:-2]
    method, target, version = lines[0].split(b" ")
    if method not in (b"GET", b"HEAD"):
        return _refused(Verdict.METHOD_NOT_ALLOWED)
    path = _path(target)
    name = None if path is None else canonical(path)
    if name is None:
        return _refused(Verdict.BAD_REQUEST)
    close = version == b"HTTP/1.0" or parse_fields(lines[1:]).close
    pairs = [line.partition(b":")[::2] for line in lines[1:]]
    fields = [(key.lower(), trim(value)) for key, value in pairs]
    found = find(name)
    if found is None:
        return Response(prepared(Verdict.NOT_FOUND, close), close)
    if not _if_match(fields, found.etag):
        header = b"HTTP/1.1 412 Precondition Failed\r\nETag: " + found.etag
        header += b"\r\nContent-Length: 0\r\n"
        return Response(Prepared(header + ending(close)), close)
    if _if_none_match(fields, found.etag):
        return Response(found.not_modified(close), close)
    part = _range(fields, len(found.content), found.etag) if method == b"GET" else None
    if part is None:
        return Response(found.found(close), close)
    return Response(_partial(found, part, close), close)
