"""What `trebuchet role new` writes: the files here. Nothing that is there is edited.

Proofs, figures, roles and features are found by their files.

In the files ``@name@`` stands for the role's name, ``@NAME@`` and ``@Name@`` for it in capitals
and in camel case. They are not
Python modules until then.
"""

import keyword
import re
import subprocess
import sys
from pathlib import Path

from ...models.errors import TrebuchetError
from ...models.files import write_whole, writing_to

__all__ = ["ROOT", "create"]

#: The checkout that this file is in.
ROOT = Path(__file__).resolve().parent.parent.parent
_HERE = Path(__file__).resolve().parent

#: Template, and where it goes.
FILES = {
    "role.txt": "cores/roles/@name@/role.py",
    "model.txt": "models/@name@.py",
    "test.txt": "tests/test_roles_@name@_role.py",
    "proof.txt": "formal/roles/@name@/role.py",
    "bench.txt": "bench/@name@.py",
    "figures.txt": "bench/roles/@name@.json",
    "feature.txt": "docs/testplan/@name@.toml",
}
#: Those of a role outside the tree, below the folder that is to have it.
OWN_FILES = {
    "role.txt": "@name@/role.py",
    "model.txt": "@name@/model.py",
    "own_test.txt": "@name@/test_@name@.py",
}
#: Relative imports of the tree's files as those of a folder elsewhere.
_ABSOLUTE = (("from ...", "from trebuchet.cores."), ("from ..", "from trebuchet.cores.roles."))


def create(name, root=ROOT):
    """Write the role ``name`` into the checkout at ``root``; return the paths, relative to it.

    ``root`` may also be any other folder: then the role is one of the user's own, with a model and
    a test. Nothing is written if the name is bad or if anything of that name is there.
    """
    _check_name(name)
    is_own = not (root / "cores" / "roles" / "contract.py").is_file()
    if is_own and (ROOT / "cores" / "roles" / name).exists():
        raise TrebuchetError(f"role {name!r} must have a new name: there is one in the tree")
    chosen = OWN_FILES if is_own else FILES
    files = {_fill(target, name): _read(template, name) for template, target in chosen.items()}
    if is_own:
        files = {path: _absolute(text, name) for path, text in files.items()}
    taken = (name,) if is_own else (f"cores/roles/{name}", f"cores/roles/{name}.py")
    for path in (*files, *taken):
        if (root / path).exists():
            raise TrebuchetError(f"role {name!r} must have a new name: {path} exists already")
    for path, text in files.items():
        with writing_to((root / path).parent):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            write_whole(root / path, text.encode())
    _tidy([str(root / path) for path in files if path.endswith(".py")], root)
    return list(files)


def _tidy(paths, root):
    """Order of imports and line breaks depend on the name; without ruff they stay as they are."""
    for command in (["check", "--quiet", "--select", "I", "--fix"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, *paths]
        subprocess.run(ruff, cwd=root, capture_output=True, check=False)


def _check_name(name):
    good = re.fullmatch(r"[a-z][a-z0-9_]{1,23}", name) and not keyword.iskeyword(name)
    if not good:
        raise TrebuchetError(
            f"a role's name must be 2 to 24 lower-case letters, digits and underscores, beginning "
            f"with a letter, not {name!r}"
        )


def _fill(text, name):
    camel = "".join(part.capitalize() for part in name.split("_"))
    text = text.replace("@name@", name).replace("@NAME@", name.upper())
    return text.replace("@Name@", camel)


def _absolute(text, name):
    """A file of the tree as one of a folder elsewhere."""
    for relative, absolute in _ABSOLUTE:
        text = re.sub(rf"^{re.escape(relative)}(?=\w)", absolute, text, flags=re.MULTILINE)
    text = text.replace("from .status import", "from trebuchet.models.status import")
    return text.replace(f"``models/{name}.py``", "``model.py``")


def _read(template, name):
    return _fill((_HERE / template).read_text(), name)
