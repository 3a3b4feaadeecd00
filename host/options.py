"""Kinds of options that several commands have."""

import math
from typing import Annotated

import typer

__all__ = ["MAX_SECONDS", "Seconds", "a_number"]

#: A day: nobody waits longer, and a socket's time-out overflows somewhere above.
MAX_SECONDS = 86400


def a_number(value: float | None) -> float | None:
    """Callback of an option with bounds: `nan` passes them, since it compares with nothing."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value


#: How long to wait for a board.
Seconds = Annotated[
    float, typer.Option(min=0.1, max=MAX_SECONDS, callback=a_number, help="Seconds to wait.")
]
