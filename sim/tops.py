"""The tops that can be simulated, by name, and how each is made."""

from ..models.errors import TrebuchetError

__all__ = ["TOPS", "source"]


def _mirror():
    from .fabric import emit
    from .mirror import Mirror

    return emit(Mirror())


TOPS = {"mirror": _mirror}


def source(name):
    """The :class:`~trebuchet.sim.build.Source` of top ``name``."""
    if name not in TOPS:
        raise TrebuchetError(f"the top to simulate must be one of {', '.join(TOPS)}, not {name!r}")
    return TOPS[name]()
