"""Which record a command works on, said to the user before it begins."""

from typing import Annotated

import typer
from rich.console import Console

from ...models.ecg import data
from ...models.ecg.data import Record

__all__ = ["Lead", "record_or_default"]

#: Option: the signal of a record to take.
Lead = Annotated[
    str | None,
    typer.Option(help="Signal to take, such as V5 or 'signal 1'; default: MLII, II, or another."),
]


def record_or_default(
    name: str | None, minutes: float | None, console: Console, lead: str | None = None
) -> Record:
    """Return the record asked for, or the default; print which it is and what was changed of it."""
    record = data.load(name or data.default_record(), minutes, lead)
    console.print(f"record {record.name}: {record.source}", markup=False)
    for line in record.notes:
        console.print(f"  {line}", markup=False)
    if record.name == data.SYNTHETIC and name is None:
        console.print(
            "[yellow]No MIT-BIH records were found, so a synthetic ECG stands in: it exercises the "
            "whole chain but is no patient. `trebuchet ecg fetch --demo` gets a real one.[/]"
        )
    return record
