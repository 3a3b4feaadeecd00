"""The load generator: closed loops, and an open loop with Poisson or regular starts.

A *closed loop* keeps a number of transfers under way on each connection. Its latency says how long
a transfer took, not how long it would have taken at a given load.

An *open loop* starts transfers at times that are chosen beforehand, whatever the target does. The
latency of a transfer counts from its *intended* start: one that waits in this process since all
connections are full has waited. So nothing is omitted where target and generator slow each other
down ("coordinated omission").

A *blocking* client waits in the kernel until a socket is ready, a *polling* one asks all the time:
it uses a whole processor, and has no wake-up in its latency.

``select()`` is used, not ``epoll``: its time-outs are of microseconds, those of Python's ``epoll``
of milliseconds, by which an open loop would be late.
"""

import random
import select
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ...client.errors import ConnectionLost
from ...models.progress import Deadline, current_simulation
from ...models.status import Status
from .connection import Clock, Connection, Done, Place, Transfer
from .figures import Run
from .traffic import Traffic, status_name

__all__ = [
    "CONNECTIONS",
    "Arrivals",
    "Load",
    "poisson",
    "regular",
    "run_closed",
    "run_open",
    "run_paced",
]

#: Most connections: select() takes descriptors below 1,024.
CONNECTIONS = 512
#: Seconds between looks at what a peer has acknowledged, of which no event tells.
_LOOK = 100e-6
#: Statuses of single transfers that an open loop counts; any other ends the run.
_COUNTED = (Status.ABORTED, Status.BUSY, Status.NO_ANSWER, Status.NO_ROOM, Status.TIMED_OUT)

#: Seconds from the start of the load to each intended start; endless.
Arrivals = Iterator[float]


def poisson(rate: float, seed: int) -> Arrivals:
    """Independent starts, ``rate`` a second on average."""
    chance = random.Random(seed)
    at = 0.0
    while True:
        at += chance.expovariate(rate)
        yield at


def regular(rate: float) -> Arrivals:
    """A start every ``1 / rate`` seconds."""
    return (number / rate for number in count(1))


@dataclass(frozen=True)
class Load:
    """What all runs have in common.

    Attributes
    ----------
    places : sequence of Place
        Where to; connections are dealt to them in turn.
    transfer : Transfer
        What each transfer is.
    connections, in_flight : int
        How many there are, and transfers under way on each at most.
    seconds : float
        So long transfers are started.
    polling : bool
        The client asks all the time.
    timeout : float
        Seconds without any completion, after which the run fails; simulated ones in a simulation.
    most : int or None
        So many transfers are started at most.
    ready : callable
        Called when all connections are open; the load begins when it returns.
    """

    places: Sequence[Place]
    transfer: Transfer
    connections: int = 1
    in_flight: int = 1
    seconds: float = 1.0
    polling: bool = False
    timeout: float = 30.0
    most: int | None = None
    ready: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        if not 1 <= self.connections <= CONNECTIONS:
            raise ValueError(f"connections must be 1 to {CONNECTIONS}, not {self.connections}")
        if self.in_flight < 1:
            raise ValueError(f"in_flight must be at least 1, not {self.in_flight}")


def _starved() -> float:
    """Seconds that this thread was ready and had no processor; 0 where the system does not tell."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


class _Loop:
    """Connections, and the run that they are of."""

    def __init__(self, load: Load) -> None:
        self.load, self.clock, self.run = load, Clock(), Run()
        # A page is the connection: no second one can be asked for on it.
        self.room = 1 if load.transfer.traffic == Traffic.PAGE else load.in_flight
        self.connections: list[Connection] = []
        try:
            for number in range(load.connections):
                place = load.places[number % len(load.places)]
                self.connections.append(Connection(place, load.transfer, self.clock, load.timeout))
        except BaseException:
            self.close()
            raise
        load.ready()
        self.run.shares = [0] * load.connections
        self.discards = load.transfer.traffic == Traffic.DISCARD
        self.under_way = 0
        self._renew()
        self._cpu, self._starved = time.process_time(), _starved()
        self._cycles = self.clock.cycles()
        self.begin = self.last = self.clock.now()

    def close(self) -> None:
        for connection in self.connections:
            connection.close()

    def _renew(self) -> None:
        self.deadline = Deadline(self.load.timeout, current_simulation())

    def takes(self, connection: Connection) -> bool:
        """Whether all before it was sent, and another transfer may begin."""
        return not connection.out and len(connection.waiting) < self.room

    def start(self, number: int, at: float | None = None) -> None:
        """Start a transfer that was to begin at ``at``; send at once what the kernel takes."""
        connection = self.connections[number]
        idle = not connection.out
        connection.start(at)
        if not self.under_way:
            self._renew()
        self.under_way += 1
        if idle and self.load.transfer.traffic != Traffic.PAGE:
            connection.send()

    def wait(self, seconds: float | None) -> Iterator[tuple[int, Done]]:
        """Send and receive what is possible; wait up to ``seconds`` for it, None: for long."""
        reading, writing = {}, {}
        for number, connection in enumerate(self.connections):
            if connection.socket is not None:
                reading[connection.socket] = number
                if connection.out:
                    writing[connection.socket] = number
        pause = self.deadline.pause() if self.under_way else self.load.timeout
        if seconds is not None:
            pause = min(pause, max(0.0, seconds))
        if self.discards and self.under_way:
            pause = min(pause, _LOOK)
        if self.load.polling:
            pause = 0.0
        readable, writable, _ = select.select(reading, writing, (), pause)
        for ready in writable:
            self.connections[writing[ready]].send()
        for ready in readable:
            number = reading[ready]
            for done in self.connections[number].receive():
                yield number, done
        if self.discards:
            for number, connection in enumerate(self.connections):
                for done in connection.acknowledged():
                    yield number, done

    def complete(self, number: int, done: Done, counts: bool = True) -> None:
        """Count an ended transfer; ``counts``: in its connection's share."""
        self.under_way -= 1
        self._renew()
        self.last = done.end
        if done.status != Status.OK:
            self.run.refused[status_name(done.status)] += 1
            return
        self.run.latencies.append(done.end - done.start)
        if self.clock.simulated:
            self.run.cycles.append(done.cycles)
        self.run.sent += done.sent
        self.run.received += done.received
        self.run.shares[number] += counts

    def finish(self) -> Run:
        run = self.run
        wall = self.clock.now() - self.begin
        run.cpu = (time.process_time() - self._cpu) / wall if wall else 0.0
        run.starved = (_starved() - self._starved) / wall if wall else 0.0
        run.seconds = self.last - self.begin
        wires = [connection.wire() for connection in self.connections]
        run.wire = min((wire for wire in wires if wire is not None), default=None)
        run.total_cycles = self.clock.cycles() - self._cycles
        return run


def _no_progress(loop: _Loop) -> ConnectionLost:
    names = ", ".join(sorted({place.name for place in loop.load.places}))
    return ConnectionLost(f"no transfer to {names} ended within {loop.deadline}")


def run_closed(load: Load, tell: Callable[[Run], None] = lambda run: None) -> Run:
    """Keep ``in_flight`` transfers under way on each connection; ``tell`` now and then, how far.

    A transfer that is refused ends the run with its error.
    """
    loop = _Loop(load)
    started = 0
    try:
        end = loop.begin + load.seconds

        def fill(number: int) -> None:
            nonlocal started
            connection = loop.connections[number]
            while len(connection.waiting) < loop.room and (
                load.most is None or started < load.most
            ):
                loop.start(number)
                started += 1

        for number in range(load.connections):
            fill(number)
        while loop.under_way:
            # Whole rounds, so that a connection cannot be served twice before another is once.
            for number, done in list(loop.wait(None)):
                loop.connections[number].check_status(done)
                loop.complete(number, done, done.end <= end or not any(loop.run.shares))
                if loop.clock.now() < end:
                    fill(number)
            tell(loop.run)
        return loop.finish()
    except TimeoutError as error:
        raise _no_progress(loop) from error
    finally:
        loop.close()


def run_paced(load: Load, rate: float, tell: Callable[[Run], None] = lambda run: None) -> Run:
    """Start at most ``rate`` transfers a second, and none while the peer takes no data.

    The limited sender of *distributed-fpga-framework*, 4.4.2: it pauses between transfers, and the
    peer's back-pressure makes it slower. Its latency counts from the actual start, as that of a
    closed loop; it omits what :func:`run_open` counts.
    """
    loop = _Loop(load)
    following, started, end = loop.begin, 0, loop.begin + load.seconds
    try:
        while True:
            now = loop.clock.now()
            more = now < end and started != load.most
            if not more and not loop.under_way:
                return loop.finish()
            free = [n for n, c in enumerate(loop.connections) if more and loop.takes(c)]
            if free and now >= following:
                loop.start(min(free, key=lambda n: len(loop.connections[n].waiting)))
                started += 1
                following = max(following + 1 / rate, now)
            until = min(following, end) if free else end if more else None
            pause = None if until is None else until - loop.clock.now()
            for number, done in list(loop.wait(pause)):
                loop.connections[number].check_status(done)
                loop.complete(number, done)
            tell(loop.run)
    except TimeoutError as error:
        raise _no_progress(loop) from error
    finally:
        loop.close()


def run_open(load: Load, arrivals: Arrivals, tell: Callable[[Run], None] = lambda run: None) -> Run:
    """Start transfers when ``arrivals`` says; at the end wait for the answers to all.

    Transfers wait here, in order, while all connections have ``in_flight``. Those without an answer
    ``timeout`` seconds after the last answer are counted as unanswered; their number is part of the
    result, since they have no latency.
    """
    loop = _Loop(load)
    schedule = _Schedule(load, arrivals, loop.begin)
    try:
        while schedule.left or loop.under_way:
            schedule.start(loop)
            try:
                ended = list(loop.wait(schedule.pause(loop.clock.now())))
            except TimeoutError:
                break
            for number, done in ended:
                if done.status not in (Status.OK, *_COUNTED):
                    loop.connections[number].check_status(done)
                loop.complete(number, done)
            tell(loop.run)
        loop.run.unanswered = loop.under_way + len(schedule.pending)
        loop.run.offered = schedule.started / load.seconds
        return loop.finish()
    finally:
        loop.close()


class _Schedule:
    """Intended starts: the next one, and those that are due and wait for room."""

    def __init__(self, load: Load, arrivals: Arrivals, begin: float) -> None:
        self._load, self._arrivals, self._begin = load, arrivals, begin
        self.pending: deque[float] = deque()
        self.started = 0
        self._following: float | None = 0.0
        self._advance()

    @property
    def left(self) -> bool:
        return self._following is not None or bool(self.pending)

    def _advance(self) -> None:
        following = next(self._arrivals)
        over = following >= self._load.seconds or self.started == self._load.most
        self._following = None if over else self._begin + following

    def pause(self, now: float) -> float | None:
        """Seconds until the next intended start."""
        return None if self._following is None else self._following - now

    def start(self, loop: _Loop) -> None:
        """Start what is due, on the connections with the fewest under way."""
        now = loop.clock.now()
        while self._following is not None and self._following <= now:
            self.pending.append(self._following)
            self.started += 1
            self._advance()
        while self.pending:
            least = min(
                range(len(loop.connections)), key=lambda n: len(loop.connections[n].waiting)
            )
            if len(loop.connections[least].waiting) >= loop.room:
                return
            at = self.pending.popleft()
            loop.run.lag.append(loop.clock.now() - at)
            loop.start(least, at)
