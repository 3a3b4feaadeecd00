"""Figures that are measured together, and the function that measures them."""

import importlib
from dataclasses import dataclass

from .job import Job, Sampled, Values

__all__ = ["Group"]


@dataclass(frozen=True)
class Group:
    """Figures that one function measures together."""

    name: str
    #: ``"module:function"`` of the function that returns the job.
    target: str
    #: What is measured and how long it takes, for `trebuchet bench`.
    description: str
    figures: tuple[str, ...]
    #: The function's argument, if it takes one.
    argument: str = ""
    dated: bool = False

    def job(self) -> Job:
        """Return the measurement, ready to be made; its inputs are generated here."""
        module_name, _, function = self.target.partition(":")
        make = getattr(importlib.import_module(module_name), function)
        job = make(self.argument) if self.argument else make()
        if isinstance(job, Sampled) != self.dated:
            kind = "a Sampled" if self.dated else "a Job"
            raise RuntimeError(f"{self.target} must return {kind}, not {type(job).__name__}")
        return job

    def check(self, values: Values) -> Values:
        """Return ``values``; refuse them if they are not of the group's figures."""
        if sorted(values) != sorted(self.figures):
            raise RuntimeError(
                f"{self.target} must measure {sorted(self.figures)}, not {sorted(values)}"
            )
        return values

    @property
    def part(self) -> str:
        """Name of the ledger's file that has its rows."""
        return self.figures[0].partition(".")[0]
