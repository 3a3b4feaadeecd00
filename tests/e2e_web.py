"""Clients of a simulated board's web service, and the plan of such a board."""

import http.client

from trebuchet.models.plan import Plan, ServiceEntry

__all__ = ["PORT", "connection", "fetch", "web_plan"]

PORT = 8000


def web_plan(half):
    """Services without roles, and the web service with images of at most ``half`` bytes."""
    usual = [s for s in Plan().services if s.framing in ("http", "page", "discard")]
    options = {"memory": 2 * half, "lanes": 2}
    return Plan((), (*usual, ServiceEntry(port=PORT, framing="web", options=options)))


def connection(board):
    """A client of the standard library, connected through the board's network."""
    made = http.client.HTTPConnection(board.ip, PORT)
    made.sock = board.connect(PORT)
    return made


def fetch(made, path, method="GET", **headers):
    """The response to a request, and its content."""
    made.request(method, path, headers=headers)
    response = made.getresponse()
    return response, response.read()
