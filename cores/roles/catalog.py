"""The roles that can be built: `NAME/role.py` in ``cores/roles`` and in folders of the user's."""

import dataclasses
import importlib
import sys
import warnings
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path

from amaranth.hdl import UnusedElaboratable

from ...models.errors import TrebuchetError
from ...models.plan import RoleEntry
from ...models.role_folders import OWN_PACKAGE, is_own, role_folder, role_names
from ..configured import NoConfig, configured, exported
from . import contract
from .contract import role_block
from .needs import RoleNeeds, RolePlace

__all__ = ["PlannedRole", "load_role", "role_names", "slot_block"]


class PlannedRole:
    """A role of a plan: its class, with its own configuration.

    Parameters: ``entry``, a :class:`~trebuchet.models.plan.RoleEntry`. Raises TrebuchetError, one
    line, for a role that there is not, an option that it has not, or a value that cannot be.

    A role's class may have, beside the contract:

    * ``Config``, a frozen dataclass: its options and their defaults. ``ValueError`` when one is
      made says what is wrong with a value. Without it the role has no options.
    * ``needs(config)``, a static method: its :class:`RoleNeeds`.
    * ``place(config, place)``, a class method: the role, for a :class:`RolePlace`. Without it it is
      made by ``Role(width, tag_width=tag_width, **options)``.
    * ``largest_result(operand)``, a static method, if ``needs`` does not say.
    """

    def __init__(self, entry: RoleEntry):
        self.entry, self.name = entry, entry.name
        self.type = load_role(entry.kind)
        kind = getattr(self.type, "Config", NoConfig)
        self.config = configured(f"role {self.name!r}", kind, entry.options)
        needs = getattr(self.type, "needs", None)
        if needs is None:
            largest = getattr(self.type, "largest_result", None)
            self.needs = RoleNeeds(largest_result=largest)
        else:
            self.needs = needs(self.config)
        if entry.instances > 1 and contract.JobKind.CONFIGURE in self.needs.kinds:
            raise TrebuchetError(
                f"role {self.name!r}: instances must be 1 for a role that clients configure, "
                f"not {entry.instances}"
            )

    def place(self, place: RolePlace):
        """The role itself."""
        if hasattr(self.type, "place"):
            return self.type.place(self.config, place)
        options = dataclasses.asdict(self.config)
        return self.type(place.width, tag_width=place.tag_width, **options)


def load_role(name):
    """The class of the role ``name``: the one in its ``__all__`` whose name ends in ``Role``."""
    folder = role_folder(name)
    if is_own(name):
        module = _import_own(name, folder)
    else:
        module = importlib.import_module(f"{contract.__package__}.{name}.role")
    return exported(module, "Role", name)


def _import_own(name, folder):
    """The module of a role of the user's, in a package of its own: imports in it may be relative.

    Kept by the role's name, so that a role is one class however often it is asked for.
    """
    package = f"{OWN_PACKAGE}.{name}"
    found = sys.modules.get(f"{package}.role")
    if found is not None and Path(found.__file__) == folder / "role.py":
        return found
    for inner in [key for key in sys.modules if key == package or key.startswith(f"{package}.")]:
        del sys.modules[inner]
    for inner, path in ((OWN_PACKAGE, None), (package, folder)):
        spec = ModuleSpec(inner, None, is_package=True)
        spec.submodule_search_locations = [] if path is None else [str(path)]
        sys.modules[inner] = module_from_spec(spec)
    try:
        return importlib.import_module(f"{package}.role")
    except TrebuchetError:
        raise
    except Exception as error:  # a fault of the user's file, which may be any
        raise TrebuchetError(
            f"role {name!r} cannot be loaded from {folder}: {type(error).__name__}: {error}"
        ) from error


def slot_block(name):
    """The register block of a slot with role ``name`` in it, configured as it comes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)  # only its registers are asked for
        own = load_role(name)().signature.block
    registers = own.registers if own is not None else ()
    return role_block(name, registers, own.description if own is not None else f"role {name}")
