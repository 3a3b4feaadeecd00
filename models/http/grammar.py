"""The accepted grammar, as regular expressions over bytes that mirror the RFCs' ABNF.

Lines are without their CR LF. Where the RFCs let a recipient be lenient, these are strict.
"""

import re

__all__ = [
    "CONTENT_LENGTH",
    "FIELD",
    "HOST",
    "REQUEST_LINE",
    "TAG",
    "TARGET",
    "TOKEN",
    "begins_field",
    "begins_request_line",
]

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # RFC 9110, 5.6.2
_VALUE = rb"[\t\x20-\x7e\x80-\xff]*"  # RFC 9110, 5.5, with the whitespace around it
_ESCAPE = rb"%[0-9A-Fa-f]{2}"  # RFC 3986, 2.1
_UNRESERVED = rb"A-Za-z0-9\-._~"  # RFC 3986, 2.3
_SUB_DELIMS = rb"!$&'()*+;="  # RFC 3986, 2.2, without the comma
_PCHAR = _UNRESERVED + _SUB_DELIMS + rb",:@"  # RFC 3986, 3.3, without escapes

#: RFC 9112, 3.2: origin form; asterisk form; or what begins as absolute and authority form do, of
#: which only the characters are checked here.
_TARGET = (
    rb"(?:/(?:[/" + _PCHAR + rb"]|" + _ESCAPE + rb")*"
    rb"(?:\?(?:[/?" + _PCHAR + rb"]|" + _ESCAPE + rb")*)?"
    rb"|\*"
    rb"|[0-9A-Za-z\[](?:[/?\[\]" + _PCHAR + rb"]|" + _ESCAPE + rb")*)"
)
TOKEN = re.compile(_TOKEN)
TARGET = re.compile(_TARGET)
REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb") (" + _TARGET + rb") HTTP/([0-9])\.([0-9])")

#: RFC 9112, 5: no whitespace before the colon, no line folding.
FIELD = re.compile(rb"(" + _TOKEN + rb"):(" + _VALUE + rb")")

#: RFC 9110, 7.2: host and port. Without the comma that joins the values of two lines, and not empty
#: (RFC 9110, 4.2.1).
HOST = re.compile(
    rb"(?:(?:[" + _UNRESERVED + _SUB_DELIMS + rb"]|" + _ESCAPE + rb")+"
    rb"|\[[" + _UNRESERVED + _SUB_DELIMS + rb":]+\])(?::[0-9]*)?"
)
#: RFC 9110, 8.6; no list, and no more digits than 64 bits have room for.
CONTENT_LENGTH = re.compile(rb"[0-9]{1,18}")
#: An entity tag as our responses have it: 64 bits as hexadecimal digits.
TAG = re.compile(rb'"([0-9a-f]{16})"')

_OPEN_ESCAPE = re.compile(rb"%[0-9A-Fa-f]?\Z")
_VERSION_BEGINS = re.compile(rb"(?:H(?:T(?:T(?:P(?:/(?:[0-9](?:\.(?:[0-9]\r?)?)?)?)?)?)?)?)?")
_FIELD_BEGINS = re.compile(rb"(?:" + _TOKEN + rb"(?::" + _VALUE + rb"\r?)?|\r)?")


def begins_request_line(line):
    """Whether a request line, its CR included, may begin with these bytes."""
    method, *more = line.split(b" ")
    if not more:
        return method == b"" or TOKEN.fullmatch(method) is not None
    if TOKEN.fullmatch(method) is None or len(more) > 2:
        return False
    target = more[0]
    if len(more) == 2:
        return bool(TARGET.fullmatch(target) and _VERSION_BEGINS.fullmatch(more[1]))
    whole = _OPEN_ESCAPE.sub(b"", target)
    if whole != target and whole in (b"", b"*"):
        return False
    return whole == b"" or TARGET.fullmatch(whole) is not None


def begins_field(line):
    """Whether a field line or the empty line, its CR included, may begin with these bytes."""
    return _FIELD_BEGINS.fullmatch(line) is not None
