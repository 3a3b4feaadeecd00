"""What `trebuchet ecg train` prints."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from .report import confusion_table, percent

__all__ = ["training_report"]


def detection_table(report: Any) -> Table:
    """Sensitivity and predictivity of the R peaks of every record."""
    table = Table("record", title="R peaks within 150 ms", title_justify="left", box=None)
    for column in ("annotated", "found", "Se", "+P"):
        table.add_column(column, justify="right")
    scores = list(report.records.items())
    total = sum((score for _, score in scores[1:]), scores[0][1])
    for name, score in [*scores, ("all", total)]:
        table.add_row(
            name,
            str(score.annotated),
            str(score.detected),
            percent(score.sensitivity),
            percent(score.predictivity),
            style="bold" if name == "all" else None,
        )
    return table


def training_report(report: Any) -> RenderableType:
    split = report.split
    parts: list[Any] = [
        detection_table(report),
        "",
        f"random half of each class: {percent(split.accuracy)} of all annotated beats, "
        f"{percent(split.found_accuracy)} of the detected ones "
        f"({percent(report.split_float)} before rounding to fixed point)",
        confusion_table(split, "test half, integer model"),
    ]
    if report.inter_patient is not None:
        other = report.inter_patient
        parts += [
            "",
            f"inter-patient (trained on DS1, tested on the DS2 records here): "
            f"{percent(other.accuracy)} of all annotated beats, "
            f"{percent(other.found_accuracy)} of the detected ones "
            f"({percent(report.inter_patient_float)} before rounding)",
            confusion_table(other, "DS2"),
        ]
    return Group(*parts)
