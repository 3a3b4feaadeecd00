"""The engines that can be built: ``NAME/engine.py`` in this folder."""

import dataclasses
import importlib

from ...models.engine_folders import engine_names
from ...models.errors import TrebuchetError
from ...models.plan import EngineEntry
from ..configured import NoConfig, configured, exported

__all__ = ["PlannedEngine", "load_engine"]


class PlannedEngine:
    """An engine of a plan: its class, with its own configuration.

    Parameters: ``entry``, an :class:`~trebuchet.models.plan.EngineEntry`. Raises TrebuchetError,
    one line, for an engine that there is not, an option that it has not, or a bad value.

    An engine's class is a body of :mod:`~trebuchet.cores.engines.contract`, made by
    ``Engine(width, **options)``. It may have ``Config``, a frozen dataclass: its options and their
    defaults. ``ValueError`` when one is made says what is wrong with a value.
    """

    def __init__(self, entry: EngineEntry):
        self.entry, self.name = entry, entry.name
        self.type = load_engine(entry.kind)
        kind = getattr(self.type, "Config", NoConfig)
        self.config = configured(f"engine {entry.name!r}", kind, entry.options)

    def body(self, width):
        """The body, for a data path of ``width`` bits."""
        return self.type(width, **dataclasses.asdict(self.config))


def load_engine(name):
    """The class of engine ``name``: the one in its ``__all__`` whose name ends in ``Engine``."""
    if name not in engine_names():
        raise TrebuchetError(
            f"there is no engine {name!r}; there are: {', '.join(engine_names()) or 'none'}"
        )
    return exported(importlib.import_module(f"{__package__}.{name}.engine"), "Engine", name)
