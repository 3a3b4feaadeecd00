"""What is measured: addresses, the role that messages name, and counters before and after a run.

Counters are asked for over connections of their own, before and after the load, never during it.
"""

import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...client import Board, BoardError
from ...client.owner import MANAGEMENT_PORT, split_address
from ...models.errors import TrebuchetError
from .connection import Place
from .figures import Run
from .traffic import PORTS, Traffic

__all__ = ["Counters", "Target", "find_targets", "split_times"]

#: Seconds for a board's status, and for a job server's metrics.
_PATIENCE = 15.0
_METRIC = "trebuchet_jobd_"


@dataclass(frozen=True)
class Counters:
    """Counters of all targets together; None: the target does not tell.

    Attributes
    ----------
    jobs, cycles : int or None
        Jobs in the roles, and clock cycles in which a job was in a role.
    uptime_ms : int or None
        The board's own time; of several the first's.
    waits, wait_s, services, service_s : float or None
        A job server's: jobs that got a node, and seconds that they waited for it; jobs that were
        answered, and seconds from their start on a node.
    """

    jobs: int | None = None
    cycles: int | None = None
    uptime_ms: int | None = None
    waits: float | None = None
    wait_s: float | None = None
    services: float | None = None
    service_s: float | None = None


@dataclass(frozen=True)
class Target:
    """A board, model node or job server.

    ``management``: the board's port with `GET /status`; ``metrics``: the job server's HOST:PORT.
    """

    place: Place
    management: int | None
    metrics: str | None

    def read(self) -> Counters:
        """Counters as they are now; those that are not to be had are None."""
        if self.metrics is not None:
            return _from_metrics(self.metrics)
        if self.management is None:
            return Counters()
        try:
            with Board(self.place.host, management=self.management, timeout=_PATIENCE) as board:
                return _from_status(board.status(), self.place.role)
        except BoardError:
            return Counters()


def _from_status(state: dict[str, Any], role: int | None) -> Counters:
    """Counters of the roles' slots of a board, or of a model node."""
    model = state.get("role_counters")
    if isinstance(model, dict):
        return Counters(model.get("jobs"), model.get("busy_cycles"))
    engines = state.get("engines")
    slots = [
        block
        for block in (engines.values() if isinstance(engines, dict) else ())
        if isinstance(block, dict) and {"jobs", "cycles", "hangs"} <= block.keys()
    ]
    uptime = state.get("uptime_ms")
    uptime = uptime if isinstance(uptime, int) else None
    if not slots:
        return Counters(uptime_ms=uptime)
    return Counters(
        sum(int(slot["jobs"]) for slot in slots),
        sum(int(slot["cycles"]) for slot in slots),
        uptime,
    )


def _from_metrics(address: str) -> Counters:
    url = f"http://{address}/metrics"
    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE) as answer:  # noqa: S310 - our scheme
            text = answer.read().decode()
    except (OSError, ValueError) as error:
        raise TrebuchetError(f"cannot read the job server's metrics at {url}: {error}") from error
    sums = dict.fromkeys(
        ("wait_seconds_count", "wait_seconds_sum", "service_seconds_count", "service_seconds_sum"),
        0.0,
    )
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        plain = name.partition("{")[0].removeprefix(_METRIC)
        if plain in sums:
            sums[plain] += float(value)
    waits, wait_s, services, service_s = sums.values()
    return Counters(waits=waits, wait_s=wait_s, services=services, service_s=service_s)


def find_targets(
    addresses: Sequence[str],
    traffic: Traffic,
    role: str | None,
    management: int | None,
    metrics: str | None,
) -> list[Target]:
    """Targets of ``HOST`` or ``HOST:PORT`` each; a role's number is looked up in the status.

    ``management`` None: a board's usual port, for addresses without a port; others have no status.
    """
    if role is not None and not traffic.smp:
        raise TrebuchetError(
            f"--role names a role of SMP messages; {traffic.value} traffic has none"
        )
    if metrics is not None:
        split_address(metrics, MANAGEMENT_PORT)
    targets = []
    for address in addresses:
        host, port = split_address(address, PORTS[traffic])
        asked = management
        if asked is None and (":" not in address or role is not None):
            asked = MANAGEMENT_PORT
        number = None
        if role is not None:
            with Board(host, management=asked or MANAGEMENT_PORT, timeout=_PATIENCE) as board:
                names = board.roles
            if role not in names:
                raise TrebuchetError(
                    f"{address} has no role {role!r}; its roles are: {', '.join(names) or 'none'}"
                )
            number = names.index(role)
        targets.append(Target(Place(host, port, number), asked, metrics))
    return targets


def _add(counters: Sequence[Counters]) -> Counters:
    """The sum, None where one target does not tell."""

    def total(name: str) -> Any:
        values = [getattr(each, name) for each in counters]
        return None if None in values or not values else sum(values)

    names = ("jobs", "cycles", "waits", "wait_s", "services", "service_s")
    found = {name: total(name) for name in names}
    return Counters(uptime_ms=counters[0].uptime_ms, **found)


def read_all(targets: Sequence[Target]) -> Counters:
    """The counters of all targets; a job server's once, however many addresses it has."""
    if targets[0].metrics is not None:
        return targets[0].read()
    return _add([target.read() for target in targets])


def split_times(
    before: Counters, after: Counters, run: Run, clock_hz: float | None
) -> dict[str, Any]:
    """Where the time of a transfer went, by the target's counters; {} if it does not tell.

    Means in microseconds: *role* is the time with a job in the role; *wire* the kernel's least
    round trip; *queue* the rest of the mean latency: sockets, other jobs before it, transmission,
    and the board's shell. Role time needs ``clock_hz``, without which it is in cycles only. Of a
    job server *queue* is the wait for a node and *role* the node's answer time, by its histograms.
    """
    found: dict[str, Any] = {}
    mean = sum(run.latencies) / run.transfers if run.transfers else None
    if run.wire is not None:
        found["wire_us"] = round(run.wire * 1e6, 3)
    role_s = queue_s = None
    if before.waits is not None and after.waits is not None:
        queue_s = _mean(before.waits, after.waits, before.wait_s, after.wait_s)
        role_s = _mean(before.services, after.services, before.service_s, after.service_s)
    elif (cycles := _mean(before.jobs, after.jobs, before.cycles, after.cycles)) is not None:
        found["role_cycles"] = round(cycles, 1)
        role_s = cycles / clock_hz if clock_hz else None
        if run.cycles:
            found["other_cycles"] = round(sum(run.cycles) / len(run.cycles) - cycles, 1)
        elif role_s is not None and mean is not None:
            queue_s = max(0.0, mean - role_s - (run.wire or 0.0))
    if role_s is not None:
        found["role_us"] = round(role_s * 1e6, 3)
    if queue_s is not None:
        found["queue_us"] = round(queue_s * 1e6, 3)
    if before.uptime_ms is not None and after.uptime_ms is not None:
        found["board_ms"] = after.uptime_ms - before.uptime_ms
    return found


def _mean(
    count: float | None, count_after: float | None, total: float | None, total_after: float | None
) -> float | None:
    """Increase of a total for each of what was counted meanwhile."""
    if None in (count, count_after, total, total_after):
        return None
    assert count is not None and count_after is not None  # noqa: PT018 - for the type checker
    assert total is not None and total_after is not None  # noqa: PT018 - for the type checker
    return (total_after - total) / (count_after - count) if count_after > count else None
