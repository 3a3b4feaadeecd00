"""A pytest plugin: a test that calls native code runs in a process of its own.

A loop in C neither takes a signal's handler nor ends with the test, so nothing in the process can
stop it. The test's function is therefore called in a child that ``fork`` makes, its fixtures in
this process, and a child that has used more than ``native_limit`` seconds of processor time is
ended by the kernel. That, a crash, and any other end is a failure of this test, with the Python
stack; the tests behind it run.

A test calls native code if its file, or a helper of the tests that it imports, loads a library
(:func:`loads_libraries`). Files that simulate boards are left alone: their threads do not live on
in a child, and what they wait for is another process, which :mod:`limits` ends.

Registered in ``conftest.py``. Needs Linux.
"""

import contextlib
import faulthandler
import functools
import json
import os
import re
import resource
import signal
import tempfile
import warnings
from pathlib import Path

import pytest

__all__ = ["loads_libraries"]

_IMPORT = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)
_LIBRARY = re.compile(r"ctypes\.CDLL\((?!None)")
_BOARDS = re.compile(r"^(?:from|import) trebuchet\.sim\b", re.MULTILINE)


@functools.cache
def loads_libraries(path: Path) -> bool:
    """Tell whether a file of tests, or a helper beside it that it imports, loads a library."""
    left, seen = [path], set()
    while left:  # a text of a test may look like an import of that file itself
        text = (file := left.pop()).read_text()
        if _LIBRARY.search(text):
            return True
        seen.add(file)
        helpers = {file.with_name(f"{name}.py") for name in _IMPORT.findall(text)} - seen
        left += [helper for helper in helpers if helper.is_file()]
    return False


def _is_native(item):
    path = item.path
    return loads_libraries(path) and not _BOARDS.search(path.read_text())


def _run(item, report):
    """In the child: call the test's function; write its outcome to ``report``."""
    names = item._fixtureinfo.argnames
    outcome, text = "passed", ""
    try:
        item.obj(**{name: item.funcargs[name] for name in names})
    except pytest.skip.Exception as skipped:
        outcome, text = "skipped", str(skipped)
    except BaseException:  # also SystemExit: it ends this test, not the tests
        outcome = "failed"
        text = str(item.repr_failure(pytest.ExceptionInfo.from_current()))
    json.dump({"outcome": outcome, "text": text}, report)
    report.flush()


def _child(item, report, stack, seconds):
    with contextlib.suppress(BaseException):
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)  # of limits, whose thread is not here
        faulthandler.register(signal.SIGXCPU, stack, chain=True)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        _run(item, report)
    os._exit(0)


def _ended(status, seconds):
    """Say how a child ended that has written no outcome."""
    number = -os.waitstatus_to_exitcode(status)
    if number in (signal.SIGXCPU, signal.SIGKILL):
        return f"did not return in {seconds} s of processor time (native_limit)"
    how = signal.Signals(number).name if number > 0 else f"exit code {-number}"
    return f"ended its process: {how}"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not _is_native(pyfuncitem):
        return None
    seconds = int(pyfuncitem.config.getini("native_limit"))
    with tempfile.TemporaryFile("w+") as report, tempfile.TemporaryFile("w+") as stack:
        with warnings.catch_warnings():  # that this process has threads
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _child(pyfuncitem, report, stack, seconds)
        try:
            _, status = os.waitpid(pid, 0)
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        report.seek(0)
        stack.seek(0)
        text = report.read()
        if not text:
            what = _ended(status, seconds)
            pytest.fail(f"{pyfuncitem.nodeid} {what}\n{stack.read()}", pytrace=False)
    done = json.loads(text)
    if done["outcome"] == "skipped":
        pytest.skip(done["text"])
    if done["outcome"] == "failed":
        pytest.fail(done["text"], pytrace=False)
    return True


def pytest_addoption(parser):
    parser.addini(
        "native_limit", "seconds of processor time of a test that calls native code", default="100"
    )
