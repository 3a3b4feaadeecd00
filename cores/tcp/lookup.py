"""The session lookup: the interface between the receive engine and the session table or index."""

from amaranth.hdl import Cat
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LookupSignature", "session_tuple"]


def session_tuple(peer):
    """Return the 64-bit lookup key of a segment or peer record: address and both ports."""
    return Cat(peer.local_port, peer.remote_port, peer.ip)


class LookupSignature(wiring.Signature):
    """Lookup of a session number by a 64-bit tuple, from the side of the requester.

    Parameters: ``session_bits``, width of a session number.

    ================  ===  ====================================================================
    ``start``         Out  strobe: look ``tuple`` up; only while ``ready``
    ``tuple``         Out  64 bits (:func:`session_tuple`); stable from ``start`` to ``finish``
    ``want_hash``     Out  with ``start``: ``hash`` is wanted, too
    ``ready``         In   a ``start`` in this cycle is accepted
    ``done``          In   ``found`` and ``session`` are valid; held until ``finish``
    ``found``         In   the tuple is in the table, as ``session``
    ``session``       In   its session number
    ``hash_valid``    In   ``hash`` is valid; held until ``finish``
    ``hash``          In   32 bits: the keyed hash of the tuple, for the initial sequence number
                           (RFC 6528)
    ``finish``        Out  strobe: ends the lookup; only while ``done``
    ``insert``        Out  with ``finish``, if the tuple was not found and ``free_valid``: enter
                           the tuple under ``free_session``
    ``free_valid``    In   there is a free number, ``free_session``
    ``free_session``  In   the number that the next ``insert`` uses
    ================  ===  ====================================================================

    Rules: 1. One lookup at a time: after ``start`` comes no other before ``finish``. 2. The
    responder does nothing that changes ``found`` or ``session`` between ``done`` and ``finish``. A
    session that is removed meanwhile is removed afterwards, so the requester must look at its
    record to see whether it still exists. 3. Neither side waits for the other between ``start`` and
    ``done``, so the latency is that of the responder; the requester may take any time to
    ``finish``. Responders: :class:`~trebuchet.cores.tcp.table.SessionTable`,
    :class:`~trebuchet.cores.tcp.index.SessionIndex`.
    """

    def __init__(self, session_bits):
        self.session_bits = session_bits
        super().__init__(
            {
                "start": Out(1),
                "tuple": Out(64),
                "want_hash": Out(1),
                "ready": In(1),
                "done": In(1),
                "found": In(1),
                "session": In(session_bits),
                "hash_valid": In(1),
                "hash": In(32),
                "finish": Out(1),
                "insert": Out(1),
                "free_valid": In(1),
                "free_session": In(session_bits),
            }
        )
