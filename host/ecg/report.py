"""What `trebuchet ecg run` and the demo print: beats per class, agreement, confusion matrices."""

from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table

from ...models.ecg.model import CLASSES
from ...models.ecg.scoring import Score
from .client import Reading, Run

__all__ = ["as_dict", "beats_table", "confusion_table", "reading_report", "run_report"]


def percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def beats_table(columns: dict[str, np.ndarray]) -> Table:
    """Beats per class, one column for each array of classes."""
    table = Table("class", title="beats per class", title_justify="left", box=None)
    for name in columns:
        table.add_column(name, justify="right")
    counts = [np.bincount(labels[labels >= 0], minlength=6) for labels in columns.values()]
    for index, label in enumerate(CLASSES):
        table.add_row(label, *(str(count[index]) for count in counts))
    table.add_row("all", *(str(count.sum()) for count in counts), style="bold")
    return table


def agreement_table(scores: dict[str, Score]) -> Table:
    table = Table("", title="agreement with the annotations", title_justify="left", box=None)
    for column in ("annotated", "found", "Se", "+P", "right class", "of all annotated"):
        table.add_column(column, justify="right")
    for name, score in scores.items():
        table.add_row(
            name,
            str(score.annotated),
            str(score.detected),
            percent(score.sensitivity),
            percent(score.predictivity),
            percent(score.found_accuracy),
            percent(score.accuracy),
        )
    return table


def confusion_table(score: Score, title: str) -> Table:
    """Rows: what the cardiologists say; columns: what was found."""
    table = Table(
        "annotated \\ found", title=f"confusion matrix: {title}", title_justify="left", box=None
    )
    for name in (*CLASSES, "missed"):
        table.add_column(name, justify="right")
    for row, name in enumerate((*CLASSES, "other or none")):
        cells = []
        for column in range(7):
            count = int(score.confusion[row, column])
            style = "bold green" if row == column else "red" if row < 6 else "dim"
            cells.append(f"[{style}]{count}[/]" if count else "[dim]·[/]")
        if row == 6:
            cells[6] = ""
        table.add_row(name, *cells)
    return table


def run_report(run: Run) -> RenderableType:
    """Everything about one record that went to a board."""
    record = run.record
    same = len(run.differing) == 0
    verdict = (
        "[green]equal to the golden model, byte for byte[/]"
        if same
        else f"[bold red]{len(run.differing)} results differ from the golden model[/]"
    )
    head = (
        f"record {record.name}: {len(record.samples)} samples, {run.messages} "
        f"{'parts' if run.streamed else 'independent blocks'} in {run.seconds:.1f} s; "
        f"{verdict}\n[dim]{record.source}[/]\n"
    )
    columns = {"board": run.board.labels}
    if record.labels is not None:
        columns["annotated"] = record.labels
    parts: list[Any] = [head, beats_table(columns)]
    board, golden = run.board.score(record), run.golden.score(record)
    if board is None or golden is None:
        return Group(*parts, "\n[dim]the record has no annotations[/]")
    parts += ["", agreement_table({"board": board, "golden model": golden})]
    parts += ["", confusion_table(board, "board")]
    if not same:
        parts += ["", confusion_table(golden, "golden model")]
    return Group(*parts)


def reading_report(record: Any, reading: Reading) -> RenderableType:
    """The same for the golden model alone."""
    head = f"record {record.name}: golden model, no board\n[dim]{record.source}[/]\n"
    columns = {"model": reading.labels}
    score = reading.score(record)
    if score is None:
        return Group(head, beats_table(columns), "\n[dim]the record has no annotations[/]")
    columns["annotated"] = record.labels
    return Group(
        head,
        beats_table(columns),
        "",
        agreement_table({"model": score}),
        "",
        confusion_table(score, "golden model"),
    )


def score_dict(score: Score | None) -> dict[str, Any] | None:
    if score is None:
        return None
    return {
        "annotated": score.annotated,
        "detected": score.detected,
        "sensitivity": score.sensitivity,
        "predictivity": score.predictivity,
        "found_accuracy": score.found_accuracy,
        "accuracy": score.accuracy,
        "confusion": score.confusion.tolist(),
    }


def as_dict(run: Run) -> dict[str, Any]:
    """The report for machines."""
    counts = np.bincount(run.board.labels, minlength=len(CLASSES))
    return {
        "record": run.record.name,
        "source": run.record.source,
        "notes": list(run.record.notes),
        "samples": len(run.record.samples),
        "messages": run.messages,
        "streamed": run.streamed,
        "seconds": run.seconds,
        "differing_messages": len(run.differing),
        "beats": dict(zip(CLASSES, counts.tolist(), strict=True)),
        "board": score_dict(run.board.score(run.record)),
        "golden": score_dict(run.golden.score(run.record)),
    }
