"""Where roles are: the folders ``NAME/role.py`` of the tree, and those that the user names.

And how their slots are called.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from .errors import TrebuchetError, did_you_mean

__all__ = ["OWN_PACKAGE", "add_roles", "is_own", "own_role_files", "role_folder", "role_names"]
__all__ += ["role_of_instance"]

#: Name below which modules of the user's roles are imported.
OWN_PACKAGE = "trebuchet_roles"
_TREE = Path(__file__).resolve().parent.parent / "cores" / "roles"
#: Folders of the user's roles, by the role's name.
_own: dict[str, Path] = {}


def role_of_instance(name: str) -> str:
    """The role of a slot that is called ``NAME``, or ``NAME_0``, ``NAME_1`` … of several."""
    return re.sub(r"_\d+$", "", name)


def add_roles(path: str | os.PathLike[str]) -> list[str]:
    """Make known the role in the folder ``path``, or all roles in the folders below it.

    Returns their names. Raises TrebuchetError if there is none, or if one has the name of a role of
    the tree.
    """
    folder = Path(path).resolve()
    found = [folder] if (folder / "role.py").is_file() else list(_roles_in(folder))
    if not found:
        raise TrebuchetError(
            f"there is no role in {str(path)!r}: neither role.py nor NAME/role.py; "
            "make one with: trebuchet role new NAME --dir FOLDER"
        )
    for each in found:
        if (_TREE / each.name / "role.py").is_file() and each != _TREE / each.name:
            raise TrebuchetError(
                f"role {each.name!r} in {str(path)!r} must have another name: "
                "there is a role of this name in the tree"
            )
        _own[each.name] = each
    return [each.name for each in found]


def _roles_in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.glob("*/role.py")):
        yield path.parent


def role_names() -> list[str]:
    """Names of all roles that are known, sorted."""
    return sorted({path.name for path in _roles_in(_TREE)} | _own.keys())


def is_own(name: str) -> bool:
    """Return whether a role is one of the user's."""
    return name in _own


def role_folder(name: str) -> Path:
    """The folder of a role; raises TrebuchetError if there is none of this name."""
    if name in _own:
        return _own[name]
    if name not in role_names():
        names = role_names()
        raise TrebuchetError(
            f"there is no role {name!r}{did_you_mean(name, names)}; there are: {', '.join(names)}; "
            f"make it with: trebuchet role new {name}"
        )
    return _TREE / name


def own_role_files() -> tuple[Path, ...]:
    """Files of all roles of the user's that are known: a build depends on them."""
    return tuple(
        path
        for folder in sorted(_own.values())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    )
