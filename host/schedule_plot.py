"""Which node did which job when: the job server's log of jobs (docs/jobs.md), read and drawn."""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..models.errors import TrebuchetError
from .pictures import save_picture

__all__ = ["LoggedJob", "busy_share", "draw_schedule", "read_job_log"]

COLUMNS = (
    "node",
    "user",
    "id",
    "bytes",
    "arrived_us",
    "started_us",
    "ended_us",
    "outcome",
)
#: Okabe and Ito's palette, which colour-blind readers tell apart.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")


@dataclass(frozen=True)
class LoggedJob:
    """A line of the log.

    Attributes
    ----------
    node, user : str
        As the job server names them: ``HOST:PORT`` and ``user HOST:PORT``.
    arrived, started, ended : float
        Seconds since the job server's start: when it had the whole request, when the node could
        begin (its job before was answered), when it had the whole answer.
    outcome : str
        Name of the status; ``OK`` for a result.
    """

    node: str
    user: str
    arrived: float
    started: float
    ended: float
    outcome: str


def read_job_log(path: Path) -> list[LoggedJob]:
    """The jobs of a log in the order of their ends."""
    try:
        with path.open(newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TrebuchetError(f"cannot read the log of jobs {path}: {error}") from error
    if not rows or tuple(rows[0]) != COLUMNS:
        raise TrebuchetError(f"{path} must begin with the columns {','.join(COLUMNS)}")
    jobs = []
    for number, row in enumerate(rows[1:], 2):
        try:
            node, user, _, _, *times, outcome = row
            arrived, started, ended = (int(time) / 1e6 for time in times)
        except ValueError:
            raise TrebuchetError(
                f"{path}, line {number}: it must have {len(COLUMNS)} columns, times as whole "
                f"microseconds, not {','.join(row)!r}"
            ) from None
        jobs.append(LoggedJob(node, user, arrived, started, ended, outcome))
    return jobs


def busy_share(jobs: Sequence[LoggedJob], node: str) -> float:
    """Share of the time from the first start to the last end in which a node had a job."""
    length = max(job.ended for job in jobs) - min(job.started for job in jobs)
    busy = sum(job.ended - job.started for job in jobs if job.node == node)
    return busy / length if length > 0 else 0.0


def draw_schedule(
    jobs: Sequence[LoggedJob], path: Path, names: Mapping[str, str], title: str = ""
) -> None:
    """Draw a Gantt chart: a row for each node, a bar for each job in its user's colour.

    ``names``: what the nodes are called, by the job server's name, top row first; those without
    a job have an empty row. Jobs without a result are hatched. The suffix of ``path`` says of which
    kind the picture is.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import; only pictures need it

    if not jobs:
        raise TrebuchetError("the log of jobs is empty: there is no schedule to draw")
    rows = list(names) + sorted({job.node for job in jobs} - names.keys())
    users = list(dict.fromkeys(job.user for job in sorted(jobs, key=lambda job: job.arrived)))
    begin = min(job.started for job in jobs)
    figure = Figure(figsize=(17, 1.8 + 0.55 * len(rows)), layout="constrained")
    axes = figure.subplots()
    done = Counter(job.user for job in jobs)
    for number, user in enumerate(users):
        of_user = [job for job in jobs if job.user == user]
        bars = axes.barh(
            [rows.index(job.node) for job in of_user],
            [job.ended - job.started for job in of_user],
            left=[job.started - begin for job in of_user],
            height=0.7,
            color=COLOURS[number % len(COLOURS)],
            edgecolor="white",
            linewidth=0.6,
            label=f"user {number + 1}: {done[user]} jobs",
        )
        for bar, job in zip(bars, of_user, strict=True):
            if job.outcome != "OK":
                bar.set_hatch("xxx")
    counts = Counter(job.node for job in jobs)
    axes.set_yticks(
        range(len(rows)),
        [f"{names.get(n, n)}\n{counts[n]} jobs, {busy_share(jobs, n):.0%} busy" for n in rows],
    )
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel="time at the job server [s]")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    figure.legend(loc="outside lower center", ncols=min(len(users), 8), frameon=False)
    if title:
        figure.suptitle(title, fontsize=13)
    save_picture(figure, path, dpi=110)
