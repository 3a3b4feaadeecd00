"""Python's garbage collector, off for work that makes millions of objects and keeps them."""

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["no_collector"]


@contextlib.contextmanager
def no_collector() -> Iterator[None]:
    """Without the collector, which takes a third of the time in which Amaranth writes a netlist.

    Its objects live until that has ended, so there is nothing to collect.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
