"""Results of tests whose inputs have not changed are reused: the option ``--reuse``.

A test that passed is not run again while nothing has changed that it can depend on. What that is,
is found for each file of tests by the program (:func:`inputs`):

* the closure of its imports (:mod:`trebuchet.models.closure`), helpers among the tests included;
* files and folders of the tree whose names are string constants in it or in its helpers;
* data files beside the modules of the closure, and top folders without Python that those name;
* all of it, for tests that start ``trebuchet`` or ``make``, or are marked ``whole_tree``;
* locked packages, Python, compilers, and those of the project's environment variables that a
  Python file among the inputs names.

Comments and docstrings do not count, but for ``whole_tree``. As a check, files of the tree that a
test opens while it runs are recorded: if one is not among its inputs, the result is not kept, and
the summary names the file. Results are kept below ``build/tests``: a fresh clone runs everything.
"""

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from trebuchet.models.closure import closure, strings_of
from trebuchet.models.file_cache import FileCache
from trebuchet.models.sources import ROOT, content_hash, files_below

TESTS = ROOT / "tests"
KEPT = ROOT / "build" / "tests"
#: Every test depends on these.
COMMON = ("conftest.py", "limits.py", "native.py", "reuse.py")
#: Strings in a test that stand for the whole project.
COMMANDS = ("trebuchet", "make", "trebuchet.host.cli")
#: Programs whose version can change a result.
COMPILERS = ("clang++", "g++", "gcc", "riscv64-unknown-elf-gcc", "cargo")
#: Variables of the project that change no result.
UNRELATED = ("TREBUCHET_BUILD", "TREBUCHET_DEBUG")
#: Of a module that was compiled before, Python opens this alone.
_COMPILED = re.compile(r"__pycache__/(\w+)\.[\w.-]+\.pyc$")
#: Results of earlier inputs that are kept for each file, so that switching branches costs nothing.
GENERATIONS = 6


@functools.cache
def tree() -> tuple[Path, ...]:
    """Return all files of the tree but those that are made."""
    return tuple(files_below(ROOT))


@functools.cache
def _by_name() -> dict[str, list[Path]]:
    """Files by name and by path from the top, and below each folder by the folder's path."""
    found: dict[str, list[Path]] = {}
    for path in tree():
        relative = path.relative_to(ROOT)
        for name in {path.name, relative.as_posix()}:
            found.setdefault(name, []).append(path)
        for above in relative.parents[:-1]:
            found.setdefault(above.as_posix(), []).append(path)
            if above.parts[0] == "tests":
                found.setdefault(above.name, []).append(path)
    return found


@functools.cache
def _pure_folders() -> frozenset[str]:
    """Top folders without Python packages: ``docs``, ``firmware`` …"""
    tops = {path.relative_to(ROOT).parts[0] for path in tree() if path.parent != ROOT}
    return frozenset(top for top in tops if not (ROOT / top / "__init__.py").exists())


@functools.cache
def inputs(path: Path) -> frozenset[Path]:
    """Return the files of the tree that a file of tests can depend on."""
    modules = closure([path])
    common = {TESTS / name for name in COMMON} & set(tree())
    helpers = {module for module in modules if module.parent == TESTS} - common
    named = set().union(*map(strings_of, helpers))
    if named & set(COMMANDS):
        return frozenset(tree()) - _other_tests(modules | common)
    found = modules | common
    for text in named:
        found.update(_by_name().get(text.strip("/"), ()))
    for module in modules - helpers:
        found.update(_data_beside(module.parent))
        for text in strings_of(module):
            if text in _pure_folders() - {"tests"} or "." in text:
                found.update(p for p in _by_name().get(text, ()) if p.suffix != ".py")
    return frozenset(found)


def _other_tests(modules: set[Path]) -> set[Path]:
    """Tests and helpers that are not among ``modules``."""
    python = {path for path in tree() if path.parent == TESTS and path.suffix == ".py"}
    return python - modules


@functools.cache
def _data_beside(folder: Path) -> frozenset[Path]:
    """Files that are no Python in and below the folder of a module."""
    if folder == ROOT:
        return frozenset()
    return frozenset(path for path in files_below(folder) if path.suffix != ".py")


def _matters(variable: str) -> bool:
    return variable.startswith("TREBUCHET_") and variable not in UNRELATED


_hash = functools.cache(content_hash)


@functools.cache
def _named_settings(path: Path) -> frozenset[str]:
    """Return the project's environment variables that a Python file names."""
    return frozenset(filter(_matters, strings_of(path)))


def _settings(path: Path) -> Iterator[str]:
    """Yield the project's environment variables that a file of tests can depend on.

    A folder or file is the same by whichever of its names.
    """
    python = (file for file in inputs(path) if file.suffix == ".py")
    named = frozenset().union(*map(_named_settings, python))
    for name in sorted(named & os.environ.keys()):
        value = os.environ[name]
        yield f"{name}={os.path.realpath(value) if os.path.exists(value) else value}"


@functools.cache
def _machine() -> str:
    """Return what every result depends on beside the tree and the settings."""
    lines = [sys.version, str(os.geteuid())]
    for name in COMPILERS:
        found = shutil.which(name)
        state = os.stat(found) if found else None
        lines.append(f"{name} {found} {state and (state.st_size, state.st_mtime_ns)}")
    return "\n".join(lines)


@functools.cache
def key(path: Path, whole: bool) -> str:
    """Return the hash of what a file of tests depends on; ``whole``: of every byte of the tree."""
    state = hashlib.sha256("\n".join([_machine(), *_settings(path)]).encode())
    if whole:
        state.update(_tracked())
    for file in sorted(tree() if whole else inputs(path) | _locks()):
        content = hashlib.sha256(file.read_bytes()).hexdigest() if whole else _hash(file)
        state.update(f"{file.relative_to(ROOT)}\0{content}\0".encode())
    return state.hexdigest()[:20]


def _tracked() -> bytes:
    """Names of the files that git tracks; empty without git."""
    command = ["git", "ls-files", "-z"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stdout


@functools.cache
def _locks() -> frozenset[Path]:
    """Return the files that say which packages there are."""
    packages = {ROOT / "pyproject.toml"} & set(tree())
    return frozenset(path for path in tree() if path.suffix == ".lock") | packages


class Reuse:
    """The plugin; there is one in each process of pytest."""

    def __init__(self, config) -> None:
        self.active = config.getoption("reuse")
        self.known: dict[Path, set[str]] = {}
        #: Names of the tests that the marks choose, by the file of their results.
        self.chosen: dict[Path, list[str]] = {}
        #: Results of files that were not even imported.
        self.left_out = 0
        chosen = config.getoption("keyword", "") or any("::" in word for word in config.args)
        self.choice = None if chosen else config.getoption("markexpr", "")
        self.opened: set[str] = set()
        self.watching = False
        if self.active:
            sys.addaudithook(self._audit)

    def _audit(self, event, arguments):
        counts = self.watching and event == "open" and isinstance(arguments[0], str)
        if counts and not _for_a_warning(sys._getframe(1)):
            self.opened.add(arguments[0])

    def file(self, path: Path) -> Path:
        """Return where the results of a file of tests are kept."""
        return KEPT / f"{path.stem}-{key(path, 'mark.whole_tree' in path.read_text())}.jsonl"

    def pytest_sessionstart(self, session):
        """With pytest-xdist, count what the workers leave out; they find the hashes made."""
        if self.active and session.config.getoption("numprocesses", None):
            for path in sorted(TESTS.glob("test_*.py")):
                self.left_out += self._complete(path)
            FileCache.write_all()

    def pytest_ignore_collect(self, collection_path, config):
        """Leave out a file if all its tests of these marks passed with the same inputs."""
        if not self.active or not collection_path.match("test_*.py"):
            return None
        count = self._complete(collection_path)
        self.left_out += count
        return True if count else None

    def _complete(self, file: Path) -> int:
        """Number of tests of a file, if all passed with the same inputs; else 0."""
        if self.choice is None:
            return 0
        path = self.file(file)
        expected = _read(path.with_suffix(".json")).get(self.choice, ())
        return len(expected) if set(expected) <= _passed(path) else 0

    def reused(self, item) -> bool:
        """Return whether an item passed with the same inputs."""
        path = self.file(item.path)
        if path not in self.known:
            self.known[path] = _passed(path)
        return item.name in self.known[path]

    def pytest_collection_finish(self, session):
        """Compute all keys now: what is edited later is not what these tests imported."""
        if self.active and self.choice is not None:
            for item in session.items:
                self.chosen.setdefault(self.file(item.path), []).append(item.name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if not self.active or not self.reused(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="passed",
            longrepr=None,
            when="call",
            user_properties=[("reused", True)],
        )
        item.ihook.pytest_runtest_logreport(report=report)
        self._tear_down(item, nextitem)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _tear_down(self, item, nextitem):
        """End the fixtures that earlier tests left for this one, and that the next does not use."""
        # Not the hook: plugins expect that this item was set up.
        state = item.session._setupstate
        call = pytest.CallInfo.from_call(lambda: state.teardown_exact(nextitem), "teardown")
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        if report.failed:
            item.ihook.pytest_runtest_logreport(report=report)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.opened, self.watching = set(), True
        try:
            return (yield)
        finally:
            self.watching = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if self.active and call.when == "call" and report.passed:
            strays = _strays(self.opened, item.path)
            if strays and item.get_closest_marker("whole_tree") is None:
                report.user_properties.append(("strays", sorted(strays)))
            else:
                KEPT.mkdir(parents=True, exist_ok=True)
                with self.file(item.path).open("a") as file:
                    file.write(json.dumps(item.name) + "\n")
        return report

    def pytest_report_teststatus(self, report, config):
        if ("reused", True) in getattr(report, "user_properties", ()):
            return "reused", "", "REUSED"
        return None

    def pytest_terminal_summary(self, terminalreporter):
        reused = len(terminalreporter.getreports("reused")) + self.left_out
        if reused:
            terminalreporter.write_line(
                f"{reused} results reused: nothing that these tests depend on has changed"
            )
        for report in terminalreporter.getreports("passed"):
            for name, strays in report.user_properties:
                if name == "strays":
                    terminalreporter.write_line(
                        f"{report.nodeid} opens {', '.join(strays)}: not among its inputs "
                        "(tests/reuse.py), so its result is not kept"
                    )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        # Not before: other workers may still collect, and all must find the same tests.
        if os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
            for path, names in self.chosen.items():
                about = path.with_suffix(".json")
                KEPT.mkdir(parents=True, exist_ok=True)
                about.write_text(json.dumps({**_read(about), self.choice: names}))
        if self.active and not hasattr(session.config, "workerinput"):
            _drop_old()
            if self.left_out and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
                session.exitstatus = pytest.ExitCode.OK


def _read(path: Path) -> dict:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _passed(path: Path) -> set[str]:
    """Names of items that passed; a line that is not whole is none."""
    names = set()
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            names.add(json.loads(line))
        except ValueError:
            continue
    return names


def _for_a_warning(frame: FrameType | None) -> bool:
    """Whether Amaranth opens a file for the settings of its warnings.

    It does so when the memory of a part of any earlier test is freed.
    """
    while frame is not None:
        if frame.f_code.co_name == "get_linter_options":
            return True
        frame = frame.f_back
    return False


def _strays(opened: set[str], path: Path) -> set[str]:
    """Files of the tree that were opened and are not among the inputs of a file of tests."""
    top = f"{ROOT}/"
    names = {_COMPILED.sub(r"\1.py", os.path.abspath(name)) for name in opened}
    relative = {os.path.relpath(name, ROOT) for name in names if name.startswith(top)}
    known = {str(file.relative_to(ROOT)) for file in inputs(path) | _locks()}
    written = {str(file.relative_to(ROOT)) for file in tree()}
    return (relative & written) - known


def _drop_old() -> None:
    """Leave the newest results of each file of tests."""
    by_file: dict[str, list[Path]] = {}
    for path in KEPT.glob("*.jsonl"):
        by_file.setdefault(path.stem.rpartition("-")[0], []).append(path)
    for paths in by_file.values():
        for path in sorted(paths, key=lambda p: p.stat().st_mtime)[:-GENERATIONS]:
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)
