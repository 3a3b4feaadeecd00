"""Tests that call native code (tests/native.py): a loop in C is ended, and named."""

import subprocess
import sys
from pathlib import Path

import pytest
from native import loads_libraries

TESTS = Path(__file__).parent

SOURCE = """
#include <stdlib.h>
int calls;
int three(void) { calls++; return 3; }
void loop(void) { for (volatile int i = 0;; i++) { } }
void ask(int (*more)(void)) { while (more()) { } }
void crash(void) { abort(); }
void leave(void) { exit(3); }
"""
TEST = """
import ctypes
import pytest

LIBRARY = ctypes.CDLL({path!r})

@pytest.fixture
def one():
    return 1

@pytest.mark.parametrize("number", [2])
def test_good(one, number):
    assert LIBRARY.three() == one + number

def test_loop(one):
    LIBRARY.loop()

def test_loop_with_callbacks():
    more = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)
    LIBRARY.ask(more)

def test_crash():
    LIBRARY.crash()

def test_exit():
    LIBRARY.leave()

def test_wrong():
    print("printed")
    assert LIBRARY.three() == 4

def test_skipped():
    pytest.skip("no reason")

def test_state_is_not_shared():
    assert ctypes.c_int.in_dll(LIBRARY, "calls").value == 0
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """What pytest prints about tests of a library, one of which does not return."""
    folder = tmp_path_factory.mktemp("native")
    (folder / "looping.c").write_text(SOURCE)
    path = folder / "looping.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, folder / "looping.c"], check=True)
    (folder / "test_it.py").write_text(TEST.format(path=str(path)))
    (folder / "conftest.py").write_text('pytest_plugins = ["native"]\n')
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS}\nnative_limit = 1\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=short"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=600
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["test_loop", "test_loop_with_callbacks"])
def test_a_loop_is_ended_and_named(outcome, name):
    reason = "did not return in 1 s of processor time (native_limit)"
    assert f"test_it.py::{name} {reason}" in outcome
    assert f"in {name}" in outcome, "the Python stack"


def test_the_others_run(outcome):
    assert "5 failed, 2 passed, 1 skipped" in outcome
    assert "PASSED test_it.py::test_good[2]" in outcome
    assert "no reason" in outcome


def test_crashes_are_failures_of_their_test(outcome):
    assert "test_it.py::test_crash ended its process: SIGABRT" in outcome
    assert "test_it.py::test_exit ended its process: exit code 3" in outcome


def test_a_failure_is_shown_as_ever(outcome):
    assert "assert 3 == 4" in outcome
    assert "printed" in outcome


def test_the_firmware_is_among_them():
    """All that load it, but for those in which it meets a simulated board."""
    for name in ("http", "host", "ip", "dhcp", "manage", "node", "restart", "config"):
        assert loads_libraries(TESTS / f"test_firmware_{name}.py"), name
    assert not loads_libraries(TESTS / "test_net_vlan.py")


def test_files_may_import_each_other(tmp_path):
    (tmp_path / "a.py").write_text("import b\n")
    (tmp_path / "b.py").write_text("import a\nimport b\n")
    assert not loads_libraries(tmp_path / "a.py")
    (tmp_path / "c.py").write_text("import a\nimport ctypes\nLIBRARY = ctypes.CDLL('x')\n")
    (tmp_path / "d.py").write_text("import c\n")
    assert loads_libraries(tmp_path / "d.py")
