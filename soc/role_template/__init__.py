"""What `trebuchet role new` writes: the files here, and entries in those that list roles.

In the files ``@name@`` stands for the role's name, ``@NAME@`` and ``@Name@`` for it in capitals
and in camel case. They are not
Python modules until then.
"""

import json
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
    "package.txt": "cores/roles/@name@/__init__.py",
    "role.txt": "cores/roles/@name@/role.py",
    "model.txt": "models/@name@.py",
    "test.txt": "tests/test_roles_@name@.py",
    "proof.txt": "formal/@name@.py",
    "bench.txt": "bench/@name@.py",
}
#: LUT4s of the template's role in an ECP5, and some room for work.
BUDGET = 2000


def create(name, root=ROOT):
    """Write the role ``name`` into the checkout at ``root``; return the paths, relative to it.

    Nothing is written if the name is bad, if anything of that name is there, or if an entry cannot
    be made.
    """
    _check_name(name)
    if not (root / "cores" / "roles" / "contract.py").is_file():
        raise TrebuchetError(f"{str(root)!r} is no checkout of Trebuchet: it has no cores/roles")
    files = {_fill(target, name): _read(template, name) for template, target in FILES.items()}
    for path in (*files, f"cores/roles/{name}", f"cores/roles/{name}.py"):
        if (root / path).exists():
            raise TrebuchetError(f"role {name!r} must have a new name: {path} exists already")
    for path, edit in _EDITS.items():
        files[path] = edit((root / path).read_text(), name)
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


def _read(template, name):
    return _fill((_HERE / template).read_text(), name)


def _insert(text, before, entry, path):
    """``text`` with ``entry`` before the first place that ``before`` matches."""
    match = re.search(before, text, re.M)
    if match is None:
        raise TrebuchetError(f"{path} must have a place for a role's entry, which it has not")
    return text[: match.start()] + entry + text[match.start() :]


def _packages(text, name):
    entry = f'    "trebuchet.cores.roles.{name}",\n'
    return _insert(text, r'^    "trebuchet\.cores\.tcp",', entry, "pyproject.toml")


def _proofs(text, name):
    listed = re.search(r"^MODULES = \(([^)]*)\)", text, re.M)
    if listed is None:
        raise TrebuchetError("formal/registry.py must list the proofs' modules, but does not")
    names = sorted([name, *re.findall(r"\w+", listed[1])])
    modules = "".join(f'    "{each}",\n' for each in names)
    return text.replace(listed[0], f"MODULES = (\n{modules})")


def _budgets(text, name):
    entry = {"budget": BUDGET, "unit": "LUT4", "better": "lower"}
    return _insert(text, r'^  "tcp\.', f'  "{name}.lut4": {json.dumps(entry)},\n', "budgets.json")


_GROUP = """\
    Group(
        "@name@",
        "trebuchet.bench.@name@:area",
        "size of the @name@ role; seconds",
        ("@name@.lut4",),
    ),
"""


def _groups(text, name):
    before = r'^    Group\(\n        "tcp",'
    return _insert(text, before, _fill(_GROUP, name), "bench/registry.py")


_FEATURE = """
[[feature]]
name = "the @name@ role equals its golden model"
part = "roles"
tier = "check"
tests = ["roles_@name@"]
"""


def _features(text, name):
    return text.rstrip("\n") + "\n" + _fill(_FEATURE, name)


_EDITS = {
    "pyproject.toml": _packages,
    "formal/registry.py": _proofs,
    "bench/budgets.json": _budgets,
    "bench/registry.py": _groups,
    "docs/testplan.toml": _features,
}
