"""What boards and pools have in common, blocking or not: members, roles, mapping; no I/O."""

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Self, TypedDict, TypeVar

from ..models.epoch import NO_EPOCH, check_epoch
from .dispatch import Dispatcher, Member, Task
from .errors import BoardError
from .jobs import AnyCall, Service
from .link import Link
from .role import Role, typed_calls
from .session import Lease, Numbers, Session, SmpSession, StatusSession
from .smp import PORT

__all__ = [
    "MANAGEMENT_PORT",
    "Leased",
    "Mapping",
    "Options",
    "Owner",
    "check_addresses",
    "make_member",
    "split_address",
]

#: The TCP port of a board's processor, for HTTP and commands.
MANAGEMENT_PORT = 80
T = TypeVar("T")


def split_address(board: str, port: int) -> tuple[str, int]:
    """``HOST`` or ``HOST:PORT``; ``port`` is that of the former."""
    host, colon, number = board.rpartition(":")
    if board.strip() and not colon:
        return board, port
    if not host.strip() or ":" in host or not number.isdecimal() or not 0 < int(number) < 1 << 16:
        raise BoardError(f"the board must be HOST or HOST:PORT, not {board!r}")
    return host, int(number)


class Options(TypedDict, total=False):
    """Options of boards and pools; what they are: :class:`~.blocking.Board`."""

    port: int
    management: int
    roles: Sequence[str] | None
    timeout: float
    in_flight: int
    retries: int
    epoch: int | None


def split_epoch(address: str, epoch: int | None) -> tuple[str, int]:
    """``ADDRESS`` or ``ADDRESS@EPOCH``; ``epoch`` is that of the former."""
    address, at, number = address.partition("@")
    if at:
        if not number.isdecimal():
            raise BoardError(f"the epoch of {address} must be a number, not {number!r}")
        epoch = int(number)
    try:
        return address, NO_EPOCH if epoch is None else check_epoch(epoch)
    except ValueError as error:
        raise BoardError(f"{address}: {error}") from error


def make_member(
    address: str,
    port: int = PORT,
    management: int = MANAGEMENT_PORT,
    roles: Sequence[str] | None = None,
    timeout: float = 30.0,
    in_flight: int = 2,
    retries: int = 2,
    epoch: int | None = None,
) -> Member:
    """A board with its links."""
    address, granted = split_epoch(address, epoch)
    lease = Lease(granted)
    if retries < 0:
        raise ValueError(f"retries must be at least 0, not {retries}")
    if in_flight < 1:
        raise ValueError(f"in_flight must be at least 1, not {in_flight}")
    if not timeout > 0:
        raise ValueError(f"timeout must be above 0 seconds, not {timeout}")
    if isinstance(roles, str):
        raise ValueError(f"roles must be a sequence of names, not the string {roles!r}")
    host, role_port = split_address(address, port)

    def smp() -> Callable[[str], Session]:
        numbers = Numbers()
        return lambda name: SmpSession(name, numbers, lease)

    whom = host if management == MANAGEMENT_PORT else f"{host}:{management}"
    links = {
        Service.ROLE: Link(host, role_port, smp(), in_flight, timeout),
        Service.MANAGEMENT: Link(host, management, smp(), 1, timeout),
        Service.STATUS: Link(host, management, lambda name: StatusSession(name, whom), 1, timeout),
    }
    return Member(address, links, None if roles is None else list(roles), lease)


def check_addresses(addresses: Sequence[str]) -> list[str]:
    """The addresses of a pool, of which there must be some."""
    if isinstance(addresses, str) or not addresses:
        raise ValueError(f"addresses must be a sequence of at least one address, not {addresses!r}")
    return list(addresses)


class Leased:
    """A single board, whose lease may be renewed."""

    _member: Member

    @property
    def epoch(self) -> int:
        """Epoch that messages to the board carry; 0: none. Another one counts from now on."""
        return self._member.lease.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        lease = self._member.lease
        lease.epoch, lease.stale = check_epoch(epoch), None


class Owner:
    """Members and the roles on them. Not for several threads at a time."""

    def __init__(self, members: list[Member], retries: int = 2) -> None:
        self._dispatcher = Dispatcher(members, retries)

    @property
    def owner(self) -> Self:
        return self

    @property
    def dropped(self) -> int:
        """Answers that came twice, or for jobs that were given up."""
        links = self._dispatcher.links
        return sum(link.dropped + link.session.duplicates for link in links)

    def role(self, name: str | None = None) -> Any:
        """The role that boards call ``name``; None: that of the TCP port.

        It has the typed calls of :mod:`trebuchet.client.role` if there are some for this name, and
        in any case ``call(data)`` and ``stream(data)``.
        """
        found = None if name is None else typed_calls(name)
        return (found or Role)(self, name)

    def __getattr__(self, name: str) -> Any:
        """``board.ecg`` is ``board.role("ecg")``, of roles with typed calls."""
        found = None if name.startswith("_") else typed_calls(name)
        if found is None:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}, and no role of this name has "
                f"typed calls; role({name!r}).call(data) takes bytes"
            )
        return found(self, name)


class Mapping:
    """Calls that were started and whose results have not been taken, at most ``ahead``."""

    def __init__(self, dispatcher: Dispatcher, plan: Callable[..., AnyCall], ordered: bool) -> None:
        self._dispatcher, self._plan, self._ordered = dispatcher, plan, ordered
        limits = (member.links[Service.ROLE].limit for member in dispatcher.members)
        self.ahead = 4 * sum(limits)
        self.tasks: deque[Task] = deque()

    @property
    def room(self) -> bool:
        return len(self.tasks) < self.ahead

    def start(self, *arguments: Any) -> Task:
        task = self._dispatcher.start(self._plan(*arguments))
        self.tasks.append(task)
        return task

    def awaited(self) -> list[Task]:
        """Calls one of which must be done before something is ready."""
        return list(itertools.islice(self.tasks, 1) if self._ordered else self.tasks)

    def ready(self) -> Task | None:
        """A call that is done and whose turn it is."""
        found = next((task for task in self.awaited() if task.done), None)
        if found is not None:
            self.tasks.remove(found)
        return found

    def close(self) -> None:
        """Give up what is still under way."""
        while self.tasks:
            self._dispatcher.cancel(self.tasks.popleft())
