"""The roles in the tree: `cores/roles/NAME/role.py`, found by their folders."""

import importlib
import inspect
from pathlib import Path

from ..cores.roles import contract
from ..cores.roles.contract import RoleSignature, role_block
from ..models.errors import TrebuchetError

__all__ = ["load_role", "role_names", "slot_block"]

_FOLDER = Path(contract.__file__).parent


def role_names(folder=_FOLDER):
    """Names of all roles, sorted."""
    return sorted(path.parent.name for path in Path(folder).glob("*/role.py"))


def load_role(name):
    """The class of the role ``name``: the one in its ``__all__`` with the ports of a role."""
    if name not in role_names():
        raise TrebuchetError(
            f"there is no role {name!r}; there are: {', '.join(role_names())}; "
            f"make it with: trebuchet role new {name}"
        )
    module = importlib.import_module(f"{contract.__package__}.{name}.role")
    classes = [getattr(module, item) for item in module.__all__]
    roles = [c for c in classes if inspect.isclass(c) and _is_role(c)]
    if len(roles) != 1:
        raise TrebuchetError(
            f"the file of role {name!r} must export one role, not {len(roles)}: {module.__file__}"
        )
    return roles[0]


def _is_role(candidate):
    try:
        return isinstance(candidate().signature, RoleSignature)
    except (TypeError, ValueError, AttributeError):  # a part that wants parameters
        return False


def slot_block(name):
    """The register block of a slot with role ``name`` in it."""
    own = load_role(name)().signature.block
    registers = own.registers if own is not None else ()
    return role_block(name, registers, own.description if own is not None else f"role {name}")
