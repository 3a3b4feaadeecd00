"""The service port: what the TCP engine and the block behind a TCP port say to each other.

A *service* is whatever sits behind one local TCP port: a framer that feeds a role, the echo role,
the CPU's mailbox. The engine knows nothing of it but this port. It has one stream out and two
in (directions as the engine sees them):

=========  ====  =====================================================================
member     dir   payload
=========  ====  =====================================================================
``event``  Out   ``kind``, ``session``, ``ok``, ``tag``, ``base``, ``position``
``tx``     In    ``session``, ``addr``, ``length``, ``push``, ``close``, ``abort``, ``tag``
``free``   In    ``session``, ``position``, ``release``
=========  ====  =====================================================================

**Stream positions.** The n-th payload byte that the peer sent on this connection (n from 0) has
position ``n mod 2**32``. All unconsumed bytes of a session lie in one segment of the receive
pool, used as a ring: position p is at byte address ``base + (p mod segment size)``, where the
segment size is a power of two and ``base`` a multiple of it.

**Events**, in the order in which they happened to the session:

==========  ================================================================================
``OPEN``    the connection is established, or is being opened by this side; it may then end
            without ever being established. Nothing else comes for the session before it.
``DATA``    in-order bytes up to (not including) ``position`` are in memory and were, or will
            be, acknowledged; ``base`` is where. Several arrivals may be told by one event. The
            latest event's ``base`` holds for every byte not yet consumed.
``EOF``     the peer has sent FIN; ``position`` is final. The service may go on sending.
``SENT``    the descriptor ``tag`` is done with: ``ok`` = 1 all its bytes (and its FIN) are
            acknowledged; 0 it was given up. Its memory is the service's again.
``CLOSED``  the session is over, both ways (``ok`` = 1) or by reset, time-out or abort (0).
            Every descriptor posted before was answered by ``SENT`` before. The engine keeps
            the session's number and its segment until the service releases it.
==========  ================================================================================

**tx**: append ``length`` bytes at ``addr`` (any alignment) to what is sent. ``push`` sets PSH on
the last segment. ``close`` sends FIN after it (``length`` may be 0); ``abort`` sends RST at once.
The engine reads the memory as often as it must; the service leaves it alone until ``SENT``. At
most :data:`TX_PER_SESSION` descriptors of a session may be unanswered; the engine may count on
that and aborts a session that breaks it (counter ``tx_overrun``). Within that bound ``tx`` never
waits for the service to take an event, so a service may stop taking events while it waits for
``tx``. A descriptor that was posted before ``release`` but met a session already over is answered
``SENT``, ``ok`` = 0, which may then come after ``CLOSED``; the service releases when it has both.

**free**: all bytes before ``position`` are consumed: the window opens, and a segment with nothing
left in it goes back to the pool. ``release`` = 1 answers ``CLOSED`` (and nothing else): the
service will read no byte and name the session no more; the number may be used for a new
connection. ``position`` is then don't-care.

Like ``tx``, ``free`` never waits for the service to take an event.

Places
------
An engine with ``TcpConfig.places`` has more sessions than its services have rows in their tables. A
session with nothing to report has no row; one that has gets a *place*, a number below
``places`` of its service's pool, which stands for the session in ``session`` of all three streams.
Then:

* ``OPEN`` reports that a session has got a place, which comes with the first thing there is to
  report of it, and again whenever that happens after ``rest``. ``position`` is the number of bytes
  consumed so far (modulo 2**32); ``ok`` = 0: the service has sent FIN for it, ``ok`` = 1: it has
  not. Another event always follows. Without places ``position`` is don't-care and ``ok`` is 1.
* ``position`` of ``SENT`` and ``CLOSED`` is that of the newest byte reported by ``DATA``.
* ``free`` has a bit more: ``rest`` = 1 (with ``release`` = 0) says that the service has consumed
  all bytes up to ``position`` and holds nothing of the session: no unanswered descriptor, no
  address, no state but what ``OPEN`` restores. The place may be given to another session.
* A release gives the place back, too.

The engine honours ``rest`` only if the session is not over, ``position`` is that of the newest byte
received, no FIN has come and no descriptor is unanswered; else it ignores it. Races:

1. *Bytes arrive, or were reported, while* ``rest`` *is on its way.* Then ``position`` is not that
   of the newest byte: each ``DATA`` reports at least one byte more than the one before. The place
   stays, ``DATA`` is delivered, and the service says ``rest`` again when it is done.
2. *The peer's FIN.* From the moment that it is in order the place stays until the session is over:
   the service answers ``EOF`` by its FIN, and then ``CLOSED`` comes, or the time-out.
3. *The session ends.* The place stays until the service releases it as an answer to ``CLOSED``.
4. ``SENT`` *is on its way.* The engine no longer counts that descriptor; the service does, and must
   not say ``rest`` before it has taken the event.
5. *The place is given to another session at once.* When ``rest`` is honoured no event with
   that place is on its way (1 to 4), and ``free`` and ``tx`` are empty of it, since ``rest`` is the
   last that the service said. ``OPEN`` of the next session follows all events of the last.
6. *A place that nobody has, or another service's, in* ``tx`` *or* ``free``: the record
   that is found does not have that place; counter ``service_errors``.

Whenever ``rest`` is ignored an event for the place is due or on its way; a service therefore says
``rest`` each time that its row has become idle by an event or by its own work, and never twice
without an event between. A released session has no unanswered descriptor: ``release`` with one is
ignored, and counted.
"""

from amaranth import unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ..memory import ADDR_WIDTH

__all__ = [
    "LENGTH_WIDTH",
    "POSITION_WIDTH",
    "SESSION_WIDTH",
    "TAG_WIDTH",
    "TX_PER_SESSION",
    "EventKind",
    "EventLayout",
    "FreeLayout",
    "ServiceSignature",
    "TxLayout",
    "free_layout",
]

#: Session numbers: 131,072 of them at most.
SESSION_WIDTH = 17
#: Stream positions are modulo 2**32, as sequence numbers are.
POSITION_WIDTH = 32
#: Length of one transmit descriptor: up to 1 MiB - 1 bytes.
LENGTH_WIDTH = 20
#: The service's own label on a descriptor.
TAG_WIDTH = 8
#: Unanswered transmit descriptors a session may have.
TX_PER_SESSION = 4


class EventKind(enum.Enum, shape=3):
    """What an event reports (see the module's docstring)."""

    OPEN = 0
    DATA = 1
    EOF = 2
    SENT = 3
    CLOSED = 4


EventLayout = data.StructLayout(
    {
        "kind": EventKind,
        "session": unsigned(SESSION_WIDTH),
        "ok": unsigned(1),
        "tag": unsigned(TAG_WIDTH),
        "base": unsigned(ADDR_WIDTH),
        "position": unsigned(POSITION_WIDTH),
    }
)

TxLayout = data.StructLayout(
    {
        "session": unsigned(SESSION_WIDTH),
        "addr": unsigned(ADDR_WIDTH),
        "length": unsigned(LENGTH_WIDTH),
        "push": unsigned(1),
        "close": unsigned(1),
        "abort": unsigned(1),
        "tag": unsigned(TAG_WIDTH),
    }
)


def free_layout(rest=False):
    """Payload of ``free``; with the bit ``rest`` if sessions have places."""
    more = {"rest": unsigned(1)} if rest else {}
    return data.StructLayout(
        {
            "session": unsigned(SESSION_WIDTH),
            "position": unsigned(POSITION_WIDTH),
            "release": unsigned(1),
            **more,
        }
    )


FreeLayout = free_layout()


class ServiceSignature(wiring.Signature):
    """Signature of a service port, from the engine's side (see the module's docstring).

    ``rest``: sessions have places.
    """

    def __init__(self, rest=False):
        self.rest = bool(rest)
        super().__init__(
            {
                "event": Out(stream.Signature(EventLayout)),
                "tx": In(stream.Signature(TxLayout)),
                "free": In(stream.Signature(free_layout(rest))),
            }
        )

    def __eq__(self, other):
        return isinstance(other, ServiceSignature) and self.rest == other.rest

    def __repr__(self):
        return f"ServiceSignature({'rest=True' if self.rest else ''})"
