"""The modules of `cores/`, and what they define."""

import importlib
import inspect
import pkgutil
from types import ModuleType

from amaranth.lib.wiring import Component

from ... import cores

__all__ = ["PREFIX", "components", "is_package", "modules", "page", "public", "short"]

PREFIX = "trebuchet.cores."


def modules() -> list[ModuleType]:
    """Return the modules of `cores/`, packages before their parts, sorted by name."""
    names = [found.name for found in pkgutil.walk_packages(cores.__path__, PREFIX)]
    return [importlib.import_module(name) for name in sorted(names)]


def is_package(module: ModuleType) -> bool:
    return hasattr(module, "__path__")


def short(module: ModuleType) -> str:
    """Return the name of a module within `cores/`."""
    return module.__name__.removeprefix(PREFIX)


def page(module: ModuleType) -> str:
    """Return the page of a module's data sheet, from the top."""
    return f"/reference/cores/{short(module)}"


def public(module: ModuleType) -> list[str]:
    """Return the names of `__all__` that the module itself defines."""
    names = getattr(module, "__all__", ())
    return [n for n in names if getattr(getattr(module, n), "__module__", None) == module.__name__]


def components(module: ModuleType) -> list[str]:
    """Return the names of the module's public Amaranth components."""
    found = ((name, getattr(module, name)) for name in public(module))
    return [name for name, each in found if inspect.isclass(each) and issubclass(each, Component)]
