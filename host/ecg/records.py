"""Which record a command works on, said to the user before it begins."""

from rich.console import Console

from ...models.ecg import data
from ...models.ecg.data import Record

__all__ = ["record_or_default"]


def record_or_default(name: str | None, minutes: float | None, console: Console) -> Record:
    """The record asked for, or the default; says which, and when it is not a real one."""
    record = data.load(name or data.default_record(), minutes)
    console.print(f"record {record.name}: {record.source}")
    if record.name == data.SYNTHETIC and name is None:
        console.print(
            "[yellow]No MIT-BIH records were found, so a synthetic ECG stands in: it exercises the "
            "whole chain but is no patient. `trebuchet ecg fetch --demo` gets a real one.[/]"
        )
    return record
