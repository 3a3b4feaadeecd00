"""All proofs: a module has a tuple ``PROOFS``, and the path of its core below ``cores``."""

import re
from importlib import import_module
from pathlib import Path

from .runner import tasks_of

__all__ = ["MODULES", "PROOFS", "tasks"]

_TOP = Path(__file__).parents[1]
#: Modules below ``formal`` with proofs, as ``tcp.receive``: a line begins with ``PROOFS = ``.
MODULES = tuple(
    ".".join(path.relative_to(_TOP).with_suffix("").parts)
    for path in sorted(_TOP.rglob("*.py"))
    if path != Path(__file__) and re.search(r"^PROOFS = ", path.read_text(), re.MULTILINE)
)

PROOFS = tuple(
    proof for name in MODULES for proof in import_module(f"..{name}", __package__).PROOFS
)


def tasks():
    """All tasks of all proofs, properties, covers and mutants."""
    for proof in PROOFS:
        yield from tasks_of(proof)
        yield from tasks_of(proof, mutants=True)
