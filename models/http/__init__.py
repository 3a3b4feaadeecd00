"""Golden model of the web service: a strict HTTP/1.1 server (RFC 9110, 9112, 3986, 6585).

- :func:`.head.scan`: where a request head ends, with constant state;
- :func:`.request.parse_head`: what a head asks for, as the gateware's parser says it;
- :data:`.response.PREPARED`, :class:`.response.Object`: responses as they lie in memory;
- :class:`.server.Connection`: a whole connection, with the firmware's slow path (:mod:`.slow`).

Sizes are in :mod:`.limits`, the grammar in :mod:`.grammar`.
"""

from .head import START, End, Found, Scan, scan
from .limits import LIMITS, Limits
from .request import Content, Request, Verdict, parse_head
from .response import PREPARED, Object, Prepared, prepared
from .server import Connection, respond_to

__all__ = [
    "LIMITS",
    "PREPARED",
    "START",
    "Connection",
    "Content",
    "End",
    "Found",
    "Limits",
    "Object",
    "Prepared",
    "Request",
    "Scan",
    "Verdict",
    "parse_head",
    "prepared",
    "respond_to",
    "scan",
]
