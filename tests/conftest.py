"""Set-up that all tests share."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Tests call tools by their plain names, with no virtual environment activated.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
# The WebAssembly tools cannot see below /tmp, so the numbered test folders live in the tree.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(ROOT / "build" / "pytest"))
Path(os.environ["PYTEST_DEBUG_TEMPROOT"]).mkdir(parents=True, exist_ok=True)


@pytest.fixture(scope="session")
def root():
    """The repository's top folder."""
    return ROOT
