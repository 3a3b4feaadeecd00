"""All proofs. A module of proofs of one core has a tuple ``PROOFS``."""

import re
from importlib import import_module
from pathlib import Path

from .runner import tasks_of

__all__ = ["PROOFS", "tasks"]

#: Modules here that have proofs: a line of theirs begins with ``PROOFS = ``.
MODULES = tuple(
    path.stem
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if path.name != "registry.py" and re.search(r"^PROOFS = ", path.read_text(), re.MULTILINE)
)

PROOFS = tuple(proof for name in MODULES for proof in import_module(f".{name}", __package__).PROOFS)


def tasks():
    """All tasks of all proofs, properties, covers and mutants."""
    for proof in PROOFS:
        yield from tasks_of(proof)
        yield from tasks_of(proof, mutants=True)
