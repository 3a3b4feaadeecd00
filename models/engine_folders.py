"""Where stream engines are: the folders ``NAME/engine.py`` of the tree."""

from pathlib import Path

__all__ = ["engine_names"]

_TREE = Path(__file__).resolve().parent.parent / "cores" / "engines"


def engine_names() -> list[str]:
    """Names of all engines, sorted."""
    return sorted(path.parent.name for path in _TREE.glob("*/engine.py"))
