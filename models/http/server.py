"""A whole connection: bytes in, bytes out, and when it closes."""

from .body import Chunked, Progress, Sized
from .head import START, scan
from .limits import LIMITS
from .request import Content, Verdict, parse_fields, parse_head
from .response import prepared
from .slow import respond

__all__ = ["Connection", "respond_to"]


def _answer_found(request, found):
    """Return the response to a request that the fast path looked up and found."""
    same = request.any_tag or request.tag == found.tag
    return found.not_modified(request.close) if same else found.found(request.close)


class Connection:
    """The server's end of a connection, one request after the other (RFC 9112, 9.3).

    Parameters
    ----------
    objects : mapping of bytes to Object
        By canonical name (:func:`.slow.canonical`).
    limits : Limits
    cold : set of bytes
        Names of objects that are not in memory: the firmware answers, which has them loaded.

    Attributes
    ----------
    closed : bool
        The last response has been sent: nothing that arrives is parsed, all of it is discarded.
    """

    def __init__(self, objects, limits=LIMITS, cold=frozenset()):
        self.objects, self.cold = objects, cold
        self.limits = limits
        self.closed = False
        self._scan = START
        self._head = b""
        #: Reader of the content that is discarded, and the head before it.
        self._body: tuple[Chunked | Sized, bytes] | None = None

    def receive(self, data):
        """Take bytes from the peer; returns those to send, in order."""
        out = b""
        while data and not self.closed:
            if self._body is not None:
                body, head = self._body
                out += self._progress(body.feed(data[0]), head)
                data = data[1:]
                continue
            found = scan(self._scan, data, self.limits.head)
            self._head += data[: found.used]
            self._scan, data = found.scan, data[found.used :]
            if found.end is not None:
                head = self._head[-found.scan.length :]
                self._scan, self._head = START, b""
                out += self._request(head)
        return out

    def end(self):
        """Take the peer's FIN: what is incomplete is not answered."""
        self.closed = True
        return b""

    def expire(self):
        """End the time that the peer has for a request; 408 if it began one (RFC 9110, 15.5.9)."""
        begun = not self.closed and (self._head != b"" or self._body is not None)
        self.closed = True
        return prepared(Verdict.TIMEOUT).sent() if begun else b""

    def _request(self, head):
        request = parse_head(head, self.limits)
        if request.verdict is Verdict.FIRMWARE:
            return self._unusual(head)
        if request.verdict is not Verdict.OK:
            self.closed = True
            return prepared(request.verdict).sent(request.head)
        path = head[request.path_offset :][: request.path_length]
        if path in self.cold:
            return self._unusual(head)
        self.closed = request.close
        found = self.objects.get(path)
        if found is None:
            return prepared(Verdict.NOT_FOUND, request.close).sent(request.head)
        return _answer_found(request, found).sent(request.head)

    def _unusual(self, head):
        fields = parse_fields(head.split(b"\r\n")[1:-2])
        if not fields.has_content:
            return self._respond(head)
        chunked = fields.content is Content.CHUNKED
        body = Chunked(self.limits) if chunked else Sized(fields.length, self.limits)
        self._body = body, head
        return self._progress(body.first, head)

    def _progress(self, progress, head):
        if progress is Progress.MORE:
            return b""
        self._body = None
        if progress is Progress.DONE:
            return self._respond(head)
        self.closed = True
        invalid = progress is Progress.INVALID
        verdict = Verdict.BAD_REQUEST if invalid else Verdict.CONTENT_TOO_LARGE
        return prepared(verdict).sent(head.startswith(b"HEAD "))

    def _respond(self, head):
        response = respond(head, self.objects.get)
        self.closed = response.close
        return response.prepared.sent(head.startswith(b"HEAD "))


def respond_to(data, objects, cuts=(), limits=LIMITS):
    """Run a connection over ``data``, cut into pieces at the positions ``cuts``.

    Returns
    -------
    (bytes, bool)
        All that the server sends, and whether it closed by itself.
    """
    connection = Connection(objects, limits)
    out = b""
    bounds = [0, *sorted(cuts), len(data)]
    for begin, end in zip(bounds, bounds[1:], strict=False):
        out += connection.receive(data[begin:end])
    return out, connection.closed
