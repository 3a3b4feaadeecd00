"""`trebuchet measure transfer|latency|load|fairness|paper`: docs/measure.md."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from ...client.errors import BoardError, Refused
from ...client.smp import Configuration
from ...models.errors import TrebuchetError
from ...models.status import Status
from . import options as o
from .connection import Transfer
from .figures import Run
from .generator import Load, poisson, run_closed, run_open
from .output import check_outputs, notes, write
from .paper_cli import paper
from .target import Target, find_targets, read_all, split_times
from .traffic import Traffic, status_name

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Measure boards, model nodes and job servers.")
app.command()(paper)

#: Bytes of an operand of ``generate``: the least that the benchmark role takes.
_OPERAND = 16
#: By these a target says that it takes no larger transfer.
_LIMITS = (Status.TOO_LARGE, Status.NO_ROOM)
#: Seconds between updates of the progress line.
_UPDATE = 0.2

Tell = Callable[[Run], None]


@dataclass(frozen=True)
class _Measurement:
    """What the runs of one command have in common."""

    name: str
    traffic: Traffic
    targets: list[Target]
    cycles: int | None
    clock_hz: float | None
    load: Load
    seed: int = 1

    def transfer(self, size: int) -> Transfer:
        """A transfer of ``size`` bytes in the direction that is measured."""
        if self.traffic == Traffic.GENERATE:
            made = Configuration(_OPERAND, size, (), (self.cycles or 0).to_bytes(4, "little"))
            return Transfer(self.traffic, _OPERAND, self.load.transfer.payload, made)
        configuration = None
        if self.cycles is not None and self.traffic.smp:
            configuration = Configuration(0, 0, (), self.cycles.to_bytes(4, "little"))
        return Transfer(self.traffic, size, self.load.transfer.payload, configuration)

    def row(self, size: int, run: Callable[[Load, Tell], Run], **labels: Any) -> dict[str, Any]:
        """Run a load of transfers of ``size`` bytes; its figures. ``labels`` are Load's or ours."""
        load = replace(
            self.load,
            transfer=self.transfer(size),
            polling=labels["client"] == o.Client.POLLING,
            connections=labels.get("connections", self.load.connections),
        )
        line = ", ".join(f"{name} {value}" for name, value in {"size": size, **labels}.items())
        with Console(stderr=True).status(f"{self.name}: {line} …") as status:
            updated = time.monotonic()

            def tell(done: Run) -> None:
                nonlocal updated
                if (now := time.monotonic()) - updated > _UPDATE:
                    updated = now
                    status.update(f"{self.name}: {line}, {done.transfers:,} transfers …")

            before = read_all(self.targets)
            ran = run(load, tell)
            after = read_all(self.targets)
        head = {"size": size, "connections": load.connections, "in_flight": load.in_flight}
        return {
            **head,
            **_shown(labels),
            **ran.table(),
            **split_times(before, after, ran, self.clock_hz),
        }

    def finish(
        self, rows: list[dict[str, Any]], as_json: bool, table: Path | None, plot: Path | None
    ) -> None:
        result = {
            "measurement": self.name,
            "targets": [target.place.name for target in self.targets],
            "traffic": self.traffic.value,
            "cycles_of_a_job": self.cycles,
            "seed": self.seed,
            "notes": notes(rows),
            "runs": rows,
        }
        if plot is not None:
            from .plot import draw  # noqa: PLC0415 - needs an extra

            draw(result, plot)
        write(result, as_json, table)


def _prepare(
    name: str,
    addresses: list[str],
    traffic: Traffic,
    role: str | None,
    management: int | None,
    metrics: str | None,
    cycles: int | None,
    clock_hz: float | None,
    largest: int,
    seed: int = 1,
    **load: Any,
) -> _Measurement:
    if cycles is not None and not traffic.smp:
        raise TrebuchetError(
            f"--cycles configures the benchmark role; {traffic.value} traffic reaches no role"
        )
    targets = find_targets(addresses, traffic, role, management, metrics)
    payload = memoryview(random.Random(seed).randbytes(largest))
    plain = Load([t.place for t in targets], Transfer(traffic, 1, payload), **load)
    return _Measurement(name, traffic, targets, cycles, clock_hz, plain, seed)


def _sizes(text: str, traffic: Traffic) -> list[int]:
    """Sizes of the runs; a page has its own."""
    return [1] if traffic == Traffic.PAGE else o.parse_sizes(text)


def _one_size(text: str, traffic: Traffic) -> int:
    wanted = _sizes(text, traffic)
    if len(wanted) != 1:
        raise TrebuchetError(f"--size must be a single size, not {text!r}")
    return wanted[0]


def _shown(labels: dict[str, Any]) -> dict[str, Any]:
    """Labels of a run as its row has them."""
    return {name: getattr(value, "value", value) for name, value in labels.items()}


def _swept(measurement: _Measurement, sizes: list[int], **labels: Any) -> list[dict[str, Any]]:
    """A closed loop at each size that the target takes; sizes that it refuses have a row, too."""
    rows: list[dict[str, Any]] = []
    error: BoardError | None = None
    for size in sizes:
        try:
            rows.append(measurement.row(size, run_closed, **labels))
        except Refused as refusal:
            if refusal.status not in (*_LIMITS, Status.BAD_LENGTH):
                raise
            error = refusal
            rows.append(
                {"size": size, **_shown(labels), "refused": {status_name(refusal.status): 1}}
            )
            if refusal.status in _LIMITS:
                break
    if error is not None and not any("latency_us" in row for row in rows):
        raise error
    return rows


@app.command()
def transfer(
    addresses: o.Addresses,
    traffic: o.TrafficOption = Traffic.ROLE,
    role: o.RoleOption = None,
    sizes: str = typer.Option("64:64M", help="Bytes: 64,1K,16K, or 64:64M by factors of four."),
    connections: o.ConnectionsOption = 1,
    in_flight: o.InFlightOption = 2,
    seconds: o.SecondsOption = 1.0,
    count: o.MostOption = None,
    client: o.ClientOption = o.Client.BLOCKING,
    cycles: o.CyclesOption = None,
    management: o.ManagementOption = None,
    metrics: o.MetricsOption = None,
    clock_hz: o.ClockOption = None,
    timeout: o.TimeoutOption = 30.0,
    as_json: o.JsonOption = False,
    csv: o.CsvOption = None,
    plot: o.PlotOption = None,
) -> None:
    """Throughput by size, up to the largest that the target takes."""
    check_outputs(csv, plot)
    wanted = _sizes(sizes, traffic)
    measurement = _prepare(
        "transfer", addresses, traffic, role, management, metrics, cycles, clock_hz, max(wanted),
        connections=connections, in_flight=in_flight, seconds=seconds, timeout=timeout, most=count,
    )  # fmt: skip
    rows = [row for kind in client.kinds for row in _swept(measurement, wanted, client=kind)]
    measurement.finish(rows, as_json, csv, plot)


@app.command()
def latency(
    addresses: o.Addresses,
    traffic: o.TrafficOption = Traffic.ROLE,
    role: o.RoleOption = None,
    sizes: str = typer.Option("64,1K,16K", help="Bytes: 64,1K,16K, or 64:64M by factors of four."),
    seconds: o.SecondsOption = 1.0,
    count: o.MostOption = None,
    client: o.ClientOption = o.Client.BOTH,
    cycles: o.CyclesOption = None,
    management: o.ManagementOption = None,
    metrics: o.MetricsOption = None,
    clock_hz: o.ClockOption = None,
    timeout: o.TimeoutOption = 30.0,
    as_json: o.JsonOption = False,
    csv: o.CsvOption = None,
    plot: o.PlotOption = None,
) -> None:
    """Round trips one at a time, of a blocking and of a polling client."""
    check_outputs(csv, plot)
    wanted = _sizes(sizes, traffic)
    measurement = _prepare(
        "latency", addresses, traffic, role, management, metrics, cycles, clock_hz, max(wanted),
        seconds=seconds, timeout=timeout, most=count,
    )  # fmt: skip
    rows = [row for kind in client.kinds for row in _swept(measurement, wanted, client=kind)]
    measurement.finish(rows, as_json, csv, plot)


@app.command()
def load(
    addresses: o.Addresses,
    rates: str = typer.Option("100,1000", help="Transfers per second, one run each: 100,1e3."),
    traffic: o.TrafficOption = Traffic.ROLE,
    role: o.RoleOption = None,
    size: str = typer.Option("1K", help="Bytes of a transfer."),
    connections: o.ConnectionsOption = 4,
    in_flight: o.InFlightOption = 2,
    seconds: o.SecondsOption = 5.0,
    count: o.MostOption = None,
    seed: o.SeedOption = 1,
    client: o.ClientOption = o.Client.BLOCKING,
    cycles: o.CyclesOption = None,
    management: o.ManagementOption = None,
    metrics: o.MetricsOption = None,
    clock_hz: o.ClockOption = None,
    timeout: o.TimeoutOption = 30.0,
    as_json: o.JsonOption = False,
    csv: o.CsvOption = None,
    plot: o.PlotOption = None,
) -> None:
    """Latency from the intended start of transfers that begin at random times (Poisson)."""
    check_outputs(csv, plot)
    wanted, asked = _one_size(size, traffic), o.parse_rates(rates)
    measurement = _prepare(
        "load", addresses, traffic, role, management, metrics, cycles, clock_hz, wanted, seed,
        connections=connections, in_flight=in_flight, seconds=seconds, timeout=timeout, most=count,
    )  # fmt: skip
    rows = []
    for kind in client.kinds:
        for rate in asked:

            def run(plain: Load, tell: Tell, rate: float = rate) -> Run:
                return run_open(plain, poisson(rate, seed), tell)

            rows.append(measurement.row(wanted, run, client=kind, rate=rate))
    measurement.finish(rows, as_json, csv, plot)


@app.command()
def fairness(
    addresses: o.Addresses,
    traffic: o.TrafficOption = Traffic.ROLE,
    role: o.RoleOption = None,
    size: str = typer.Option("1K", help="Bytes of a transfer."),
    connections: str = typer.Option("1,2,4,8,16,32,64", help="Connections, one run each."),
    in_flight: o.InFlightOption = 2,
    seconds: o.SecondsOption = 2.0,
    client: o.ClientOption = o.Client.BLOCKING,
    cycles: o.CyclesOption = None,
    management: o.ManagementOption = None,
    metrics: o.MetricsOption = None,
    clock_hz: o.ClockOption = None,
    timeout: o.TimeoutOption = 30.0,
    as_json: o.JsonOption = False,
    csv: o.CsvOption = None,
    plot: o.PlotOption = None,
) -> None:
    """Shares of 1 to 64 connections that compete, and Jain's index of them."""
    check_outputs(csv, plot)
    wanted, counts = _one_size(size, traffic), o.parse_numbers(connections)
    measurement = _prepare(
        "fairness", addresses, traffic, role, management, metrics, cycles, clock_hz, wanted,
        seconds=seconds, timeout=timeout, in_flight=in_flight,
    )  # fmt: skip
    rows = [
        measurement.row(wanted, run_closed, client=kind, connections=number)
        for kind in client.kinds
        for number in counts
    ]
    measurement.finish(rows, as_json, csv, plot)
