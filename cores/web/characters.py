"""Classes of characters in request heads (RFC 9110, 5.6.2; RFC 3986, 2.2, 2.3, 3.3)."""

from amaranth import unsigned
from amaranth.lib import data

__all__ = ["CLASSES", "CharacterLayout", "classify"]

_DIGIT = b"0123456789"
_ALPHA = bytes(range(ord("A"), ord("Z") + 1)) + bytes(range(ord("a"), ord("z") + 1))
_UNRESERVED = _DIGIT + _ALPHA + b"-._~"
_SUB_DELIMS = b"!$&'()*+;="  # without the comma

#: Names of the classes, and the bytes in each.
CLASSES = {
    "token": b"!#$%&'*+-.^_`|~" + _DIGIT + _ALPHA,
    "value": b"\t" + bytes(range(0x20, 0x7F)) + bytes(range(0x80, 0x100)),
    "path": _UNRESERVED + _SUB_DELIMS + b",:@",
    "host": _UNRESERVED + _SUB_DELIMS,
    "space": b"\t ",
    "digit": _DIGIT,
    "alpha": _ALPHA,
    "hex": _DIGIT + b"ABCDEFabcdef",
    "tag": _DIGIT + b"abcdef",
    "cr": b"\r",
    "lf": b"\n",
    "sp": b" ",
    "slash": b"/",
    "dot": b".",
    "percent": b"%",
    "query": b"?",
    "star": b"*",
    "open": b"[",
    "close": b"]",
    "colon": b":",
    "comma": b",",
    "quote": b'"',
}

#: A bit for each class.
CharacterLayout = data.StructLayout({name: unsigned(1) for name in CLASSES})


def classify(byte, classes):
    """Return statements that set ``classes``, a view of :data:`CharacterLayout`, for ``byte``."""
    return [
        getattr(classes, name).eq(byte.matches(*(format(member, "08b") for member in members)))
        for name, members in CLASSES.items()
    ]
