"""Which C++ compiler makes the simulators."""

import pytest
from trebuchet.sim import build


@pytest.fixture
def clang(tmp_path, monkeypatch):
    """Return a function that puts a clang++ with an exit code on the path."""
    build._compiler.cache_clear()
    yield lambda code: make_clang(tmp_path, monkeypatch, code)
    build._compiler.cache_clear()


def make_clang(folder, monkeypatch, code):
    path = folder / "clang++"
    path.write_text(f"#!/bin/sh\nexit {code}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_clang_is_taken_where_it_works(clang):
    clang(0)
    assert build._compiler() == "clang++"


def test_a_clang_without_a_library_is_left_alone(clang):
    clang(1)
    assert build._compiler() == "g++"
