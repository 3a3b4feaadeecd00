"""Reuse of results: what a test depends on, and when it runs again."""

import json
import shutil
import subprocess
import sys

import pytest
import reuse
from trebuchet.models import closure as module
from trebuchet.models.closure import closure, module_path

ROOT = reuse.ROOT


def names(paths):
    return {str(path.relative_to(ROOT)) for path in paths}


def test_a_core_depends_on_what_it_imports_alone():
    found = names(closure(["trebuchet.cores.router.router"]))
    assert {"cores/router/router.py", "cores/router/credits.py", "cores/__init__.py"} <= found
    assert not any(name.startswith(("cores/tcp", "soc", "host")) for name in found)


def test_modules_named_in_strings_count():
    """The command imports what strings name, when it is asked for it."""
    found = names(closure(["trebuchet.host.cli"]))
    assert {"sim/cli.py", "formal/cli.py", "bench/cli.py", "soc/cli.py"} <= found
    # A proof names its core as a string, the registry computes the names of the proofs' modules.
    assert {"cores/tcp/receive.py", "formal/tcp/receive.py"} <= found
    assert names(closure(["trebuchet.host.demo"])) >= {"sim/tops.py", "sim/build.py", "sim/run.py"}


def test_folders_bound_the_closure():
    found = names(closure(["trebuchet.bench.ltl"], folders=("bench", "sim", "models")))
    assert "sim/ltl.py" in found
    assert not any(name.startswith(("cores", "soc")) for name in found)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("trebuchet", "__init__.py"),
        ("trebuchet.cores", "cores/__init__.py"),
        ("trebuchet.cores.stream", "cores/stream.py"),
        ("trebuchet.cores.nothing", None),
        ("trebuchet.cores.stream.Payload", None),
        ("trebuchet.no identifier", None),
        ("amaranth", None),
    ],
)
def test_names_of_modules(name, path):
    found = module_path(name)
    assert found == (ROOT / path if path else None)


def test_every_form_of_import_is_seen(tmp_path, monkeypatch):
    """In functions, relative, of neighbours, by strings and by computed names."""
    files = {
        "__init__.py": "",
        "a/__init__.py": "",
        "a/one.py": "def f():\n    from ..b import two\n",
        "a/lazy.py": "import importlib\ndef f(n):\n    return importlib.import_module(n)\n",
        "a/other.py": "",
        "b/__init__.py": "NAMES = {'x': 'trebuchet.a.lazy:f'}\n",
        "b/two.py": '"""Not trebuchet.a.other."""\n',
        "c/__init__.py": "import importlib\nimportlib.import_module(f'trebuchet.b.{1}')\n",
        "tests/helper.py": "from trebuchet.a import one\n",
        "tests/test_x.py": "import helper\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(module, "_FACTS", module.FileCache("unused", module._facts))

    def found(start):
        start = tmp_path / start if start.endswith(".py") else start
        return {str(path.relative_to(tmp_path)) for path in closure([start], root=tmp_path)}

    assert found("trebuchet.b.two") == {"b/two.py"}
    assert found("trebuchet.a.one") >= {"b/two.py", "b/__init__.py", "a/lazy.py", "a/other.py"}
    assert found("trebuchet.c") >= {"b/two.py"}
    assert found("tests/test_x.py") >= {"tests/helper.py", "a/one.py", "b/two.py"}


def test_inputs_of_a_test():
    router = names(reuse.inputs(ROOT / "tests" / "test_router_router.py"))
    assert {"tests/test_router_router.py", "tests/streams.py", "tests/conftest.py"} <= router
    assert "cores/router/router.py" in router
    assert "cores/tcp/receive.py" not in router
    fuzz = names(reuse.inputs(ROOT / "tests" / "test_firmware_fuzz.py"))
    assert {"firmware/dhcp.c", "tests/fuzz/target_dhcp.c"} <= fuzz
    board = names(reuse.inputs(ROOT / "tests" / "test_e2e_board.py"))
    assert {
        "firmware/main.c",
        "sim/harness/tap.cpp",
        "cores/tcp/receive.py",
        "boards/sim.py",
    } <= board


def test_inputs_are_found_once_however_many_settings_there_are(monkeypatch):
    """Of hundreds of files in each worker: otherwise minutes pass before the first test."""
    asked = []
    monkeypatch.setattr(reuse, "inputs", lambda path: asked.append(path) or frozenset({path}))
    for number in range(20):
        monkeypatch.setenv(f"TREBUCHET_NUMBER{number}", "1")
    file = ROOT / "tests" / "test_router_router.py"
    assert list(reuse._settings(file)) == []
    assert asked == [file]


def test_a_command_depends_on_everything():
    found = names(reuse.inputs(ROOT / "tests" / "test_host_cli.py"))
    assert {"host/cli.py", "firmware/main.c", "docs/testplan.toml", "pyproject.toml"} <= found
    assert "tests/test_router_router.py" not in found


PROJECT = """
import pathlib
import pytest

HERE = pathlib.Path(__file__).parent


def test_adds():
    import added
    assert added.VALUE == 1


@pytest.mark.parametrize("n", [1, 2])
def test_numbers(n):
    assert n < (HERE / "limit.txt").read_text().count("x") + 2


def test_reads_what_nobody_sees():
    assert (HERE.parent / ("se" + "cret.md")).read_text()
"""


@pytest.fixture
def project(request):
    """A copy of the plugin with a project of four tests."""
    top = ROOT / "build" / "reuse" / "trebuchet"
    shutil.rmtree(top, ignore_errors=True)
    (top / "tests").mkdir(parents=True)
    shutil.copytree(ROOT / "models", top / "models", ignore=shutil.ignore_patterns("__pycache__"))
    for name in reuse.COMMON:
        shutil.copy(ROOT / "tests" / name, top / "tests")
    (top / "__init__.py").write_text("")
    (top / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["whole_tree"]\n')
    (top / "secret.md").write_text("text\n")
    (top / "tests" / "added.py").write_text("VALUE = 1  # one\n")
    (top / "tests" / "limit.txt").write_text("x\n")
    (top / "tests" / "test_small.py").write_text(PROJECT)
    return top


def run(project, *options, code=0, env=None):
    """Counts of outcomes of a run, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "--reuse", *options, "tests"]
    env = {"PYTHONPATH": str(project.parent), "PATH": "/usr/bin:/bin", **(env or {})}
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, env=env)
    assert done.returncode == code, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if " in " in line and line[0].isdigit()]
    words = lines[-1].replace(",", "").split() if lines else []
    counts = {word: int(words[k - 1]) for k, word in enumerate(words) if words[k - 1].isdigit()}
    return counts, done.stdout


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadgroup")])
def test_what_passed_is_not_run_again(project, options):
    first, _ = run(project, *options)
    assert first["passed"] == 4
    again, text = run(project, *options)
    assert again["reused"] == 3
    assert again["passed"] == 1
    assert "3 results reused" in text
    assert "opens secret.md: not among its inputs" in text


@pytest.mark.parametrize(
    "options", [(), pytest.param(("-n", "2", "--dist", "loadgroup"), marks=pytest.mark.nightly)]
)
def test_a_file_of_which_all_passed_is_not_imported(project, options):
    path = project / "tests" / "test_small.py"
    path.write_text(PROJECT[: PROJECT.index("def test_reads")] + "print('imported')\n")
    run(project, *options)
    counts, text = run(project, "-s", *options)
    assert counts == {}
    assert "3 results reused" in text
    assert "imported" not in text
    # One test of a file is chosen by name: it is imported, and its result reused.
    assert run(project, "-k", "adds")[0]["reused"] == 1
    # With other marks other tests are chosen.
    assert run(project, "-m", "not slow", *options)[0]["reused"] == 3
    (project / "tests" / "limit.txt").write_text("xx\n")
    assert run(project, *options)[0]["passed"] == 3


@pytest.mark.parametrize(
    ("file", "text", "reused"),
    [
        ("tests/added.py", "# nothing but a comment\nVALUE = 1\n", 3),
        ("tests/added.py", "VALUE = 2 - 1\n", 0),
        ("tests/limit.txt", "xx\n", 0),
        ("tests/test_small.py", PROJECT + "\n# the end\n", 3),
        ("secret.md", "other\n", 3),
        ("models/__init__.py", "X = 1\n", 3),
    ],
)
def test_what_a_test_depends_on_makes_it_run_again(project, file, text, reused):
    run(project)
    (project / file).write_text(text)
    counts, _ = run(project)
    assert counts.get("reused", 0) == reused


def test_a_failure_is_never_reused(project):
    (project / "tests" / "added.py").write_text("VALUE = 3\n")
    for _ in range(2):
        counts, _ = run(project, code=1)
        assert counts["failed"] == 1


def test_a_broken_line_is_no_result(project):
    run(project)
    (path,) = (project / "build" / "tests").glob("*.jsonl")
    lines = path.read_text().splitlines()
    assert json.loads(lines[0]) == "test_adds"
    path.write_text('"test_ad\n' + "\n".join(lines[1:]) + "\n")
    assert run(project)[0]["reused"] == 2


def test_without_the_option_everything_runs(project):
    run(project)
    command = [sys.executable, "-m", "pytest", "-q", "tests"]
    env = {"PYTHONPATH": str(project.parent), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, env=env)
    assert "4 passed" in done.stdout


@pytest.mark.parametrize(
    ("value", "reused"),
    [({"TREBUCHET_LIMIT": "2"}, 0), ({"TREBUCHET_OTHER": "1"}, 3), ({"TREBUCHET_BUILD": "x"}, 3)],
)
def test_settings_count_for_those_who_name_them(project, value, reused):
    (project / "tests" / "added.py").write_text('VALUE = 1\nNAME = "TREBUCHET_LIMIT"\n')
    run(project)
    assert run(project, env=value)[0].get("reused", 0) == reused


def test_a_folder_has_several_names(project, tmp_path):
    (tmp_path / "link").symlink_to(project)
    (project / "tests" / "added.py").write_text('VALUE = 1\nNAME = "TREBUCHET_DATA"\n')
    run(project, env={"TREBUCHET_DATA": str(project)})
    again = {"TREBUCHET_DATA": str(tmp_path / "link" / "tests" / "..")}
    assert run(project, env=again)[0]["reused"] == 3


MAKES = """
from amaranth.hdl import Elaboratable, Fragment, Module


class Part(Elaboratable):
    def elaborate(self, platform):
        return Module()


def test_makes_one():
    Fragment.get(Part(), None)  # there are no warnings before
    Part.kept = Part()
"""
FREES = """
import gc
import sys


def test_frees_it():
    del sys.modules["test_a"].Part.kept
    gc.collect()
"""


def test_warnings_of_parts_that_others_made_are_no_inputs(project):
    """Amaranth opens the file in which the part was made."""
    (project / "tests" / "test_small.py").unlink()
    (project / "tests" / "test_a.py").write_text(MAKES)
    (project / "tests" / "test_b.py").write_text(FREES)
    _, text = run(project)
    assert "UnusedElaboratable" in text
    assert "not among its inputs" not in text


FAILS = """
import os


def test_first():
    assert "FAILS" not in os.environ


def test_last():
    pass
"""


def test_a_file_ends_with_a_result_that_is_reused(project):
    """What its other tests have set up is torn down before the next file's."""
    (project / "tests" / "test_small.py").unlink()
    (project / "tests" / "test_a.py").write_text(FAILS)
    (project / "tests" / "test_b.py").write_text(FAILS)
    first, _ = run(project, code=1, env={"FAILS": "1"})
    assert first == {"failed": 2, "passed": 2}
    again, _ = run(project)
    assert again == {"passed": 2, "reused": 2}


def test_who_lists_the_tests_depends_on_all():
    found = names(reuse.inputs(ROOT / "tests" / "test_repo_testplan.py"))
    assert {str(p.relative_to(ROOT)) for p in (ROOT / "tests").glob("test_*.py")} <= found


def test_public_modules_of_cores_for_other_designs_are_found():
    assert module_path("trebuchet.litex") == ROOT / "integration" / "public" / "litex.py"
    assert "integration/modules.py" in names(closure(["trebuchet.litex"]))
