"""The roles in the tree: `cores/roles/NAME/role.py`, found by their folders."""

import importlib
import warnings
from pathlib import Path

from amaranth.hdl import UnusedElaboratable

from ...models.errors import TrebuchetError
from . import contract
from .contract import role_block

__all__ = ["load_role", "role_names", "slot_block"]

_FOLDER = Path(contract.__file__).parent


def role_names(folder=_FOLDER):
    """Names of all roles, sorted."""
    return sorted(path.parent.name for path in Path(folder).glob("*/role.py"))


def load_role(name):
    """The class of the role ``name``: the one in its ``__all__`` whose name ends in ``Role``."""
    if name not in role_names():
        raise TrebuchetError(
            f"there is no role {name!r}; there are: {', '.join(role_names())}; "
            f"make it with: trebuchet role new {name}"
        )
    module = importlib.import_module(f"{contract.__package__}.{name}.role")
    roles = [getattr(module, item) for item in module.__all__ if item.endswith("Role")]
    if len(roles) != 1:
        raise TrebuchetError(
            f"the file of role {name!r} must export one role, not {len(roles)}: {module.__file__}"
        )
    return roles[0]


def slot_block(name):
    """The register block of a slot with role ``name`` in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)  # only its registers are asked for
        own = load_role(name)().signature.block
    registers = own.registers if own is not None else ()
    return role_block(name, registers, own.description if own is not None else f"role {name}")
