"""A TCP connection to one service of a board, without I/O, and what happens when it is lost.

States: ``closed``; ``opening``, while a driver connects; ``open``. A driver (:mod:`.blocking`,
:mod:`.aio`) does what the link asks for and reports what happens:

==========================  =====================================================================
the link                    the driver
==========================  =====================================================================
``wants_open``              connects, and says ``opening``, then ``opened`` or ``failed``
``session.outgoing``        sends it, and says ``sent``
``pause()``                 waits no longer than that, then asks again
``state`` became closed     closes its socket
                            says ``received`` and ``ended``
==========================  =====================================================================

Time-outs measure progress. A link is lost if for ``timeout`` seconds, of simulated time where a
simulator runs this process (:mod:`trebuchet.models.progress`), neither a whole answer came nor the
peer took any of what is to be sent.
"""

from collections.abc import Callable
from enum import Enum

from ..models.progress import Deadline, current_simulation
from .errors import BoardError, ConnectionLost
from .session import Outcome, Session, Ticket

__all__ = ["Link", "LinkState"]

#: Seconds before a lost link is opened again: doubled each time, up to the last.
_REST, _LONGEST_REST = 0.05, 16.0


class LinkState(Enum):
    CLOSED = "closed"
    OPENING = "opening"
    OPEN = "open"


class Link:
    """A connection to ``host:port``; ``limit``: messages in flight; ``timeout`` in seconds.

    ``report`` is called with the outcomes of jobs, ``lose`` with the jobs of a lost connection, of
    each whether all of it was sent, and why.
    """

    def __init__(
        self,
        host: str,
        port: int,
        make: Callable[[str], Session],
        limit: int,
        timeout: float,
    ) -> None:
        self.host, self.port = host, port
        self.name = f"{host}:{port}"
        self.limit, self.timeout = limit, timeout
        self.report: Callable[[Outcome], None] = lambda outcome: None
        self.lose: Callable[[list[tuple[Ticket, bool]], BoardError], None] = lambda jobs, why: None
        self.state = LinkState.CLOSED
        #: Whether it may be opened again; one that was accepted may not.
        self.renewable = True
        #: Failures since the last answer, and the latest.
        self.failures = 0
        self.error: BoardError | None = None
        self.ever_opened = False
        self.dropped = 0
        #: Number of the latest job that it was given.
        self.latest = 0
        self._make = make
        self.session = make(self.name)
        self._rest: Deadline | None = None
        self._deadline: Deadline | None = None
        self._pending = 0
        self._unacknowledged: Callable[[], int] = lambda: 0

    @property
    def room(self) -> int:
        """Jobs that it takes now."""
        if self.state != LinkState.OPEN or self.session.over:
            return 0
        return max(0, self.limit - self.session.in_flight)

    @property
    def resting(self) -> bool:
        """Whether it was lost so recently that it is not opened yet."""
        return self._rest is not None and self._rest.left() > 0

    @property
    def rest_left(self) -> float:
        """Seconds until it may be opened again."""
        return self._rest.left() if self._rest is not None else 0.0

    def hopeless(self, retries: int) -> bool:
        """Whether it is not worth waiting for: it failed at once, or ``retries`` times more."""
        allowed = -1 if not self.renewable else retries if self.ever_opened else 0
        return self.state == LinkState.CLOSED and self.failures > allowed

    def abandon(self, ticket: Ticket) -> None:
        """Nobody waits for the answer to a job any more."""
        self.session.abandon(ticket)
        if not self.session.in_flight:
            self._deadline = None

    def forgive(self) -> None:
        """Forget failures: a new call tries it again at once."""
        self.failures, self.error, self._rest = 0, None, None

    def submit(self, ticket: Ticket, role: int | None) -> None:
        """Send a job; only with :attr:`room`."""
        idle = not self.session.in_flight
        self.session.submit(ticket, role)
        if idle:
            self._renew()

    # --- what drivers say ----------------------------------------------------------------------

    def opening(self) -> None:
        self.state = LinkState.OPENING
        self._deadline = Deadline(self.timeout, current_simulation())

    def opened(self, unacknowledged: Callable[[], int] = lambda: 0) -> None:
        """There is a connection; ``unacknowledged()``: bytes that the peer has not taken."""
        self.state, self.ever_opened = LinkState.OPEN, True
        self.session = self._make(self.name)
        self._deadline, self._unacknowledged = None, unacknowledged

    def failed(self, why: str | BoardError) -> None:
        """The connection is lost, or there is none to be had."""
        error = ConnectionLost(why) if isinstance(why, str) else why
        lost = self.session.lost() if self.state == LinkState.OPEN else []
        self.dropped += self.session.duplicates
        self.session.duplicates = 0
        self.error = error
        self._closed()
        rest = min(_REST * 2**self.failures, _LONGEST_REST)
        self.failures += 1
        self._rest = Deadline(rest)
        self.lose(lost, error)

    def broke(self, error: OSError) -> None:
        why = ConnectionLost(f"the connection to {self.name} broke: {error}")
        why.transient = True
        self.failed(why)

    def sent(self, count: int) -> None:
        """The kernel took ``count`` bytes of ``session.outgoing``."""
        self.session.sent(count)
        self._renew()

    def received(self, data: bytes) -> None:
        """Bytes came."""
        try:
            for outcome in self.session.received(data):
                self._answered(outcome)
        except BoardError as error:
            self.failed(error)

    def ended(self) -> None:
        """The peer says no more."""
        idle = not self.session.in_flight
        try:
            for outcome in self.session.ended():
                self._answered(outcome)
        except BoardError as error:
            self.failed(error)
            return
        if self.state == LinkState.OPEN:
            self._close(rests=idle and not self.session.over)

    def close(self) -> None:
        """Give the connection up: nobody waits for it."""
        if self.state != LinkState.CLOSED:
            self._close(rests=False)

    def _close(self, rests: bool) -> None:
        self.session.lost()
        self.dropped += self.session.duplicates
        self.session.duplicates = 0
        self._closed()
        if rests:
            self._rest = Deadline(_REST)

    def _closed(self) -> None:
        self.state, self._deadline = LinkState.CLOSED, None
        self._unacknowledged = lambda: 0  # the driver's holds its socket

    def _answered(self, outcome: Outcome) -> None:
        self.failures, self.error = 0, None
        self.report(outcome)
        self._renew()

    # --- time ----------------------------------------------------------------------------------

    def _left_to_send(self) -> int:
        return self.session.unsent() + self._unacknowledged()

    def _renew(self) -> None:
        oldest = self.session.oldest()
        if oldest is None:
            self._deadline = None
            return
        self._deadline = Deadline(oldest.batch.timeout or self.timeout, current_simulation())
        self._pending = self._left_to_send()

    def pause(self) -> float | None:
        """Seconds that a driver may block at most; None: any. Ends a link without progress."""
        if self._deadline is None:
            return None
        try:
            return self._deadline.pause()
        except TimeoutError as error:
            return self._expired(self._deadline, error)

    def _expired(self, deadline: Deadline, error: TimeoutError) -> float | None:
        if self.state == LinkState.OPENING:
            self.failed(f"{self.name} did not answer within {deadline}")
            return 0.0
        left = self._left_to_send()
        if 0 < left < self._pending:
            self._renew()
            return self.pause()
        if self.session.unsent():
            self.failed(f"{self.name} took no data for {deadline}")
        elif self.session.inside:
            self.failed(f"{self.name} sent no whole message within {deadline}")
        else:
            self.failed(f"{self.name} sent nothing for {deadline}")
        return 0.0
