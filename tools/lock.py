#!/usr/bin/env python3
"""`make lock`: one resolution of all requirements, and of each extra the part that it needs.

``requirements.lock`` has everything; it is what ``make venv`` installs. Each
``requirements/EXTRA.lock`` is resolved with it as constraint, so that a package has one version
in all of them. A version that is locked and still fits is kept.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FULL = "requirements.lock"
OPTIONS = ("--universal", "--python-version", "3.11", "--generate-hashes", "--no-annotate")
OPTIONS += ("--custom-compile-command", "make lock", "-q")


def extras():
    """Files of requirements of each extra of pyproject.toml and of the client, by name."""
    dynamic = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["dynamic"]
    base = dynamic["dependencies"]["file"]
    files = {name: [*base, *e["file"]] for name, e in dynamic["optional-dependencies"].items()}
    return {"client": base, **files}


def compile_lock(sources, target, *options):
    uv = [sys.executable, "-m", "uv", "pip", "compile", *OPTIONS, *options, *sources, "-o", target]
    subprocess.run(uv, cwd=ROOT, check=True)


def main():
    found = extras()
    compile_lock(found.pop("development"), FULL)
    for name, sources in found.items():
        compile_lock(sources, f"requirements/{name}.lock", "-c", FULL)


if __name__ == "__main__":
    main()
