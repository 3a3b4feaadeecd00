"""Which board does which job, without I/O: calls, their batches, retries, lost boards.

A :class:`Dispatcher` has the boards of a pool, one for a ``Board``. Jobs wait in one queue, and go
to the board with the fewest in flight that has the role, of several to the one that has had none
for the longest time; its links are opened while jobs wait that
no open link has room for.

====================================  ==========================================================
a job                                 is
====================================  ==========================================================
answered with a result                done
refused                               failed; if pure and the status is ``ABORTED`` or
                                      ``NO_ANSWER``, repeated
answered ``STALE`` by a board that    repeated, by another board only: it was not worked on; the
has an epoch here                     board gets no job until it has another epoch
lost before all of it was sent        repeated: no board works on a part of a message
lost, and pure                        repeated; after a time-out or an answer that makes no sense
                                      on another board only
lost, and not pure                    failed: the board may have done it
repeated ``retries`` times            failed the next time
====================================  ==========================================================

A call fails with the first of its jobs; the others of the batch are given up.
"""

import functools
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ..models.epoch import NO_EPOCH
from ..models.progress import Deadline
from ..models.register_map import RegisterMap
from ..models.status import Status
from .errors import BoardError, ConnectionLost, ProtocolError, WrongRole
from .jobs import AnyCall, Batch, Service
from .link import Link, LinkState
from .session import Lease, Outcome
from .status import parse_status, roles_of

__all__ = ["Dispatcher", "Member", "Task"]

_REPEATABLE = (Status.ABORTED, Status.NO_ANSWER)


class Member:
    """A board: its links by service, and the names of its roles by their numbers.

    ``roles`` None: they are asked for with the first job that names one. A board of which one role
    was named by the user has that role at its port: messages to it carry no number.
    """

    def __init__(
        self,
        name: str,
        links: dict[Service, Link],
        roles: list[str] | None,
        lease: Lease | None = None,
    ) -> None:
        self.name, self.links, self.roles = name, links, roles
        self.lease = lease or Lease()
        self.port_only = roles is not None and len(roles) == 1
        #: Of the build that it runs, once it is known.
        self.register_map: RegisterMap | None = None
        #: Why its roles are not known, and when they may be asked for again.
        self.unresolved: BoardError | None = None
        self.asking = False
        self.refusals = 0
        self.rest = Deadline(0)

    def number(self, role: str | None) -> int | None:
        if role is None or self.port_only or self.roles is None:
            return None
        return self.roles.index(role)


class Task:
    """A call that runs; ``done`` when it has a result or an error."""

    def __init__(self, call: AnyCall, member: Member | None) -> None:
        self.call, self.member = call, member
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.on_done: Callable[[Task], None] = lambda task: None
        self.run: _Run | None = None

    def finish(self, result: Any, error: BaseException | None) -> None:
        self.done, self.result, self.error, self.run = True, result, error, None
        self.on_done(self)

    def outcome(self) -> Any:
        """The result; raises the error."""
        if self.error is not None:
            raise self.error
        return self.result


class _Job:
    """A job of a batch that runs; what sessions see as a ticket."""

    def __init__(self, run: "_Run", index: int) -> None:
        self.run, self.index = run, index
        self.attempts = 0
        self.link: Link | None = None
        self.avoid: Link | None = None
        self.begun = 0.0

    @property
    def batch(self) -> Batch:
        return self.run.batch

    @property
    def operand(self) -> bytes:
        return self.run.batch.operands[self.index]


class _Run:
    """A batch that runs; ``link``: where its jobs go if they go together."""

    def __init__(self, task: Task, batch: Batch) -> None:
        self.task, self.batch = task, batch
        self.jobs = [_Job(self, index) for index in range(len(batch.operands))]
        #: Jobs that are not under way.
        self.pending = deque(self.jobs)
        self.results: list[bytes | None] = [None] * len(self.jobs)
        self.left = len(self.jobs)
        self.link: Link | None = None
        self.over = False


class Dispatcher:
    """Runs calls on boards. ``retries``: how often a job is repeated.

    A driver calls :meth:`poll` after :meth:`start` and after everything it told a link, and serves
    :attr:`links` as :class:`~.link.Link` has it.
    """

    def __init__(self, members: Iterable[Member], retries: int) -> None:
        self.members, self.retries = list(members), retries
        self.links = [link for member in self.members for link in member.links.values()]
        for link in self.links:
            link.report = self._report
            link.lose = functools.partial(self._lose, link)
        self.wanted: set[Link] = set()
        #: Batches in the order in which they came.
        self._runs: list[_Run] = []
        self._streams: dict[Link, _Run] = {}
        self._active = self._given = 0

    # --- for drivers ---------------------------------------------------------------------------

    def start(self, call: AnyCall, member: Member | None = None) -> Task:
        """Begin a call; ``member``: on which board, None for any."""
        task = Task(call, member)
        if not self._active:
            for link in self.links:
                if link.state == LinkState.CLOSED:
                    link.forgive()
            for each in self.members:
                each.unresolved, each.refusals, each.rest = None, 0, Deadline(0)
        self._begin(task)
        return task

    def cancel(self, task: Task, error: BaseException | None = None) -> None:
        """Give a call up."""
        if task.done:
            return
        if task.run is not None:
            self._give_up(task.run)
        task.call.close()
        self._finish(task, None, error)

    def poll(self) -> None:
        """Give jobs to links; find out which links must be opened, and which may be closed."""
        self.wanted.clear()
        for link in self.links:
            # Not while it is opening: the session is still that of the connection before.
            if link.state == LinkState.OPEN and link.session.over and not link.session.in_flight:
                link.close()
        # A batch that fails here may be followed by another, which this loop comes to.
        for run in self._runs:
            while run.pending and not run.over and self._place(run.pending[0]):
                pass
        self._runs = [run for run in self._runs if not run.over]

    def openable(self) -> list[Link]:
        """Links that must be opened now."""
        return [
            link
            for link in self.links
            if link in self.wanted
            and link.state == LinkState.CLOSED
            and link.renewable
            and not link.resting
        ]

    def pause(self) -> float | None:
        """Seconds that a driver may block at most; None: any. May end links."""
        pauses = [found for link in self.links if (found := link.pause()) is not None]
        pauses += [
            link.rest_left
            for link in self.links
            if link in self.wanted and link.state == LinkState.CLOSED and link.renewable
        ]
        pauses += [member.rest.left() for member in self.members if self._is_asked_again(member)]
        return min(pauses, default=None)

    def _is_asked_again(self, member: Member) -> bool:
        return bool(self._runs) and member.unresolved is not None and not member.asking

    # --- placing jobs --------------------------------------------------------------------------

    def _place(self, job: _Job) -> bool:
        """Give a job to a link; False if no link has room for it now."""
        found: list[Link] = []
        hope, reasons = False, []
        for member in self.members:
            if job.run.task.member not in (None, member):
                continue
            link = member.links[job.batch.service]
            reason = self._reason_against(member, job)
            if reason is not None:
                reasons.append(reason)
                if link.hopeless(self.retries):
                    self.wanted.add(link)  # while others are waited for, it is tried again
                continue
            hope = True
            if member.roles is None and job.batch.role is not None:
                continue  # they are being asked for
            if link.room and self._takes(link, job):
                found.append(link)
            elif link.state == LinkState.CLOSED:
                self.wanted.add(link)
        if found:
            link = min(
                found, key=lambda link: (link is job.avoid, link.session.in_flight, link.latest)
            )
            self._submit(job, link)
            return True
        if not hope:
            self._fail(job.run, _combined(reasons))
        return False

    def _reason_against(self, member: Member, job: _Job) -> BoardError | None:
        """Why a board will not take a job; None if it may."""
        service, role = job.batch.service, job.batch.role
        link = member.links[service]
        if role is not None:
            if member.roles is None:
                if not member.rest.left():
                    self._ask_roles(member)
                if member.unresolved is not None:
                    return member.unresolved
            elif role not in member.roles:
                roles = ", ".join(member.roles) or "none"
                return WrongRole(f"{member.name} has no role {role!r}; its roles are: {roles}")
        if service == Service.ROLE and member.lease.stale is not None:
            return member.lease.stale
        if link.hopeless(self.retries):
            return link.error or ConnectionLost(f"the connection to {link.name} is closed")
        return None

    def _takes(self, link: Link, job: _Job) -> bool:
        if not job.batch.together:
            return True
        return job.run.link is link or (job.run.link is None and link not in self._streams)

    def _submit(self, job: _Job, link: Link) -> None:
        job.run.pending.popleft()
        if job.batch.together:
            job.run.link = link
            self._streams[link] = job.run
        job.link, job.begun = link, time.monotonic()
        self._given += 1
        link.latest = self._given
        link.submit(job, self._member_of(link).number(job.batch.role))

    def _member_of(self, link: Link) -> Member:
        return next(each for each in self.members if link in each.links.values())

    def _ask_roles(self, member: Member) -> None:
        if member.asking:
            return
        member.asking = True
        member.links[Service.STATUS].forgive()

        def known(task: Task) -> None:
            member.asking = False
            member.unresolved = None
            if isinstance(task.error, BoardError):
                member.refusals += 1
                member.rest = Deadline(min(0.05 * 2**member.refusals, 16.0))
                member.unresolved = BoardError(
                    f"{task.error}; a peer without status is used by naming its roles: roles=…"
                )

        task = Task(ask_status(member), member)
        task.on_done = known
        self._begin(task)

    # --- what becomes of jobs ------------------------------------------------------------------

    def _begin(self, task: Task) -> None:
        self._active += 1
        self._resume(task, lambda: next(task.call))

    def _finish(self, task: Task, result: Any, error: BaseException | None) -> None:
        self._active -= 1
        task.finish(result, error)

    def _resume(self, task: Task, step: Callable[[], Batch]) -> None:
        """Let a call go on until its next batch."""
        while True:
            try:
                batch = step()
            except StopIteration as end:
                self._finish(task, end.value, None)
                return
            except Exception as error:
                self._finish(task, None, error)
                return
            task.run = _Run(task, batch)
            if task.run.left:
                self._runs.append(task.run)
                return
            step = lambda: task.call.send([])  # noqa: E731

    def _report(self, outcome: Outcome) -> None:
        job, result = outcome
        assert isinstance(job, _Job)
        run = job.run
        if run.over:
            return
        if isinstance(result, BoardError):
            again = run.batch.pure and result.status in _REPEATABLE
            again |= self._is_stale(job, result)
            if not (again and self._repeat(job)):
                self._fail(run, result)
            return
        if (wrong := run.batch.fault(job.index, result)) is not None:
            name = job.link.name if job.link else ""
            self._fail(run, ProtocolError(f"{name} sent {wrong}"))
            return
        run.results[job.index] = result
        run.left -= 1
        run.batch.told(job.index, result, time.monotonic() - job.begun)
        if run.left == 0 and not run.over:
            run.over = True
            self._streams = {link: each for link, each in self._streams.items() if each is not run}
            results = [found for found in run.results if found is not None]
            self._resume(run.task, lambda: run.task.call.send(results))

    def _is_stale(self, job: _Job, refusal: BoardError) -> bool:
        """Whether its board refuses the epoch that it has here; it gets no job then."""
        if refusal.status != Status.STALE or job.link is None or job.batch.service != Service.ROLE:
            return False
        lease = self._member_of(job.link).lease
        if lease.epoch == NO_EPOCH:
            return False
        lease.stale = refusal
        return True

    def _lose(self, link: Link, jobs: list[tuple[Any, bool]], why: BoardError) -> None:
        self._streams.pop(link, None)
        begun = {job.run for job, whole in jobs if whole and job.batch.together}
        others = len(self.members) > 1
        for job, whole in reversed(jobs):  # the first one is the first in the queue again
            if job.run.over:
                continue
            job.avoid = link
            untouched = not whole and job.run not in begun
            harmless = untouched or (job.batch.pure and (others or why.transient))
            if not (harmless and self._repeat(job)):
                self._fail(job.run, why)

    def _repeat(self, job: _Job) -> bool:
        """Have a job done again, with all others that go together; False: not any more."""
        run = job.run
        if job.attempts >= self.retries:
            return False
        if not run.batch.together:
            job.attempts += 1
            run.pending.appendleft(job)
            return True
        if not run.batch.pure and any(result is not None for result in run.results):
            return False
        attempts, avoid = job.attempts + 1, job.avoid
        self._give_up(run)
        again = _Run(run.task, run.batch)
        run.task.run = again
        for each in again.jobs:
            each.attempts, each.avoid = attempts, avoid
        self._runs.insert(0, again)
        return True

    def _fail(self, run: _Run, error: BoardError) -> None:
        self._give_up(run)
        self._resume(run.task, lambda: run.task.call.throw(error))

    def _give_up(self, run: _Run) -> None:
        """Forget what has not been answered of a batch."""
        run.over = True
        run.pending.clear()
        for job in run.jobs:
            if job.link is not None and run.results[job.index] is None:
                job.link.abandon(job)
        if run.link is not None and self._streams.get(run.link) is run:
            # The board keeps the state of a record for a connection: the next one needs another.
            del self._streams[run.link]
            run.link.session.over = True


def ask_status(member: Member) -> AnyCall:
    """Ask a board for its status; its roles are known then."""
    (body,) = yield Batch(None, [b""], pure=True, service=Service.STATUS)
    state = parse_status(member.name, body)
    if member.roles is None:
        member.roles = roles_of(state)
    return state


def _combined(reasons: list[BoardError]) -> BoardError:
    """One error for what is against each board."""
    if len(reasons) == 1:
        return reasons[0]
    kinds = {type(reason) for reason in reasons}
    kind = kinds.pop() if len(kinds) == 1 else ConnectionLost
    lines = "; ".join(str(reason) for reason in reasons) or "the pool has no board"
    return kind(f"no board of the pool takes the job: {lines}")
