"""What `trebuchet prove` prints: results as they arrive, progress, the table, explanations."""

import json
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from .runner import Result
from .trace import explain

__all__ = ["Report"]

#: Failures whose cycles are shown; of further ones only a file is named.
SHOWN = 3


class Report:
    """Context manager for a run of ``tasks`` tasks, which calls :meth:`result` with each result.

    A result is one line on standard output; progress goes to standard error: a line that is
    rewritten if that is a terminal, else a line at each tenth. With ``as_json`` standard output has
    nothing but the list of rows at the end.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Console(stderr=True)
        # Result lines go to standard output, whether or not that is the same terminal.
        self.live = Live(
            Spinner("dots", "looking for what has changed"), console=self.console, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self.left: dict[str, None] = {}
        self.tasks = self.done = self.bad = 0

    def __enter__(self) -> "Report":
        self._show()
        return self

    def __exit__(self, *error: object) -> None:
        self.live.stop()

    def _show(self) -> None:
        if self.console.is_terminal:
            self.live.start()

    def expect(self, names: Sequence[str]) -> None:
        """The names of the tasks whose results will come."""
        self.left, self.tasks = dict.fromkeys(names), len(names)
        self._progress()

    def result(self, result: Result) -> None:
        """Report a result."""
        self.left.pop(result.task.name, None)
        self.done += 1
        self.bad += not result.good
        if not self.as_json:
            how = "cached" if result.cached else f"{result.seconds} s, {result.solver}"
            colour = typer.colors.GREEN if result.good else typer.colors.RED
            self.live.stop()
            typer.echo(f"{typer.style(f'{result.status:7}', colour)} {result.task.name} ({how})")
            self._show()
        self._progress()

    def _progress(self) -> None:
        text = f"{self.done} of {self.tasks} done, {self.bad} not as expected"
        if self.console.is_terminal:
            text += f"; left: {', '.join(self.left)}"[:60]
            self.live.update(Spinner("dots", text))
        elif (
            self.done == self.tasks
            or (10 * self.done) // self.tasks > (10 * (self.done - 1)) // self.tasks
        ):
            typer.echo(text, err=True)

    def end(self, results: Sequence[Result]) -> None:
        """Print the table, failures first, or the rows as JSON; then explain the failures."""
        if self.as_json:
            typer.echo(json.dumps([result.row() for result in results], indent=2))
        else:
            Console().print(_table(sorted(results, key=lambda result: result.good)))
        for number, result in enumerate(r for r in results if not r.good):
            text = explain(result.folder)
            self.console.rule(result.task.name)
            typer.echo(text if number < SHOWN else f"see {result.folder / 'trace.txt'}", err=True)


def _table(results: Sequence[Result]) -> Table:
    table = Table("proof", "method", "depth", "status", "s", "solver", box=None)
    # In a narrow place, such as a file, names are folded and nothing is cut.
    for column in table.columns:
        column.overflow, column.no_wrap = "fold", column.header != "proof"
    for r in results:
        colour = "green" if r.good else "red"
        status = f"[{colour}]{r.status}[/]{' (cached)' if r.cached else ''}"
        row = (r.task.name, r.task.method, str(r.task.depth), status, str(r.seconds), r.solver)
        table.add_row(*row)
    return table
