"""`trebuchet role`: a new role builds at once; registers, list, and errors of one line."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from trebuchet.cores.roles.catalog import load_role, role_names, slot_block
from trebuchet.cores.roles.contract import role_block
from trebuchet.cores.shell import Shell
from trebuchet.cores.shell_config import ShellConfig
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.plan import Plan
from trebuchet.soc import role_template

NAME = "probe_one"


def trebuchet(*arguments, **options):
    command = [sys.executable, "-m", "trebuchet.host.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def copy(root, tmp_path_factory):
    """A copy of the checkout in a folder where it is the package `trebuchet`."""
    target = tmp_path_factory.mktemp("copy") / "trebuchet"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        if name and (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, target / name)
    return target


@pytest.fixture(scope="module")
def run(copy):
    """Runs a command in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "TREBUCHET_DEBUG": "1"}

    def run(*command):
        command = [sys.executable, "-m", *map(str, command)]
        result = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-2000:]
        return result.stdout

    return run


@pytest.fixture(scope="module")
def created(run, copy):
    """What `role new` wrote."""
    lines = run("trebuchet.host.cli", "role", "new", NAME).splitlines()
    paths = [line for line in lines if (copy / line).is_file() and line]
    assert f"cores/roles/{NAME}/role.py" in paths
    return paths


@pytest.mark.slow
def test_a_new_role_is_clean(run, created):
    sources = [path for path in created if path.endswith(".py")]
    run("ruff", "check", *sources)
    run("ruff", "format", "--check", *sources)


@pytest.mark.slow
def test_a_new_role_passes_its_test(run, created):
    said = run("pytest", "-q", "-m", "not slow", f"tests/test_roles_{NAME}_role.py")
    assert " passed" in said
    run("pytest", "-q", "tests/test_repo_testplan.py", "-k", "entries or named_tests")
    run("pytest", "-q", "tests/test_repo_layout.py", "-k", "at_its_path")


@pytest.mark.nightly
@pytest.mark.slow
def test_a_new_role_is_proved(run, created):
    rows = json.loads(run("trebuchet.host.cli", "prove", NAME, "--json"))
    assert [row["status"] for row in rows] == ["proved", "proved"]
    rows = json.loads(run("trebuchet.host.cli", "prove", NAME, "--mutants", "--json"))
    assert [row["status"] for row in rows] == ["caught", "caught"]


@pytest.mark.slow
def test_a_new_role_has_a_figure(run, created):
    figures = json.loads(run("trebuchet.host.cli", "bench", NAME, "--json"))
    row = figures[f"{NAME}.lut4"]
    assert 500 < row["value"] <= row["budget"]


@pytest.mark.slow
def test_a_new_role_is_listed(run, created):
    assert NAME in run("trebuchet.host.cli", "role", "list")
    header = run("trebuchet.host.cli", "role", "csr", NAME, "--c")
    assert f"trebuchet_{NAME}_mask_write" in header


@pytest.mark.slow
def test_a_second_one_of_that_name_changes_nothing(run, created, copy):
    with pytest.raises(TrebuchetError, match=f"'{NAME}' must have a new name: .* exists already"):
        role_template.create(NAME, copy)


@pytest.mark.parametrize("name", ["", "x", "Ecg", "1st", "a-b", "class", "a" * 25, "../up"])
def test_bad_names(name, tmp_path):
    with pytest.raises(TrebuchetError, match="a role's name must be 2 to 24 lower-case letters"):
        role_template.create(name, tmp_path)


@pytest.mark.parametrize("name", ["ecg", "slot", "status", "gate"])
def test_names_in_use(name, copy):
    with pytest.raises(TrebuchetError, match=f"role '{name}' must have a new name: .* exists"):
        role_template.create(name, copy)


@pytest.mark.slow
def test_a_role_outside_the_tree(root, tmp_path):
    """It passes its own test, and a shell takes it; the tree's roles keep their names."""
    result = trebuchet("role", "new", "fine", "--dir", tmp_path)
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in tmp_path.rglob("*.py")) == [
        "model.py",
        "role.py",
        "test_fine.py",
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path / "fine"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert " passed" in done.stdout, done.stdout[-3000:]
    with pytest.raises(TrebuchetError, match="role 'fine' must have a new name: .* exists"):
        role_template.create("fine", tmp_path)
    with pytest.raises(TrebuchetError, match="role 'ecg' must have a new name: there is one in"):
        role_template.create("ecg", tmp_path)


@pytest.mark.slow
def test_nothing_that_is_there_is_edited(root, copy, created):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    names = [name for name in listed.stdout.decode().split("\0") if (root / name).is_file()]
    edited = [name for name in names if (copy / name).read_bytes() != (root / name).read_bytes()]
    assert edited == []
    assert set(created).isdisjoint(names)


def test_every_role_is_found():
    assert {"benchmark", "ecg", "loopback", "matmul", "verilog_example"} <= set(role_names())
    for name in role_names():
        assert slot_block(name).registers[: len(role_block("x").registers)]
    assert load_role("loopback").__name__ == "LoopbackRole"


def test_any_role_fits_the_shell():
    """Its registers and its Verilog are the shell's, too; an unknown one is refused."""
    shell = Shell(ShellConfig(plan=Plan.of_roles("verilog_example"), result_slot=64))
    assert "csr_verilog_example" in shell.signature.members
    assert [path.name for path in shell.verilog_files] == ["adler32.v"]
    assert ShellConfig().make_slots() == []
    with pytest.raises(TrebuchetError, match="there is no role 'nothing'; there are: .*loopback"):
        ShellConfig(plan=Plan.of_roles("nothing"))


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--c", "#define TREBUCHET_BENCHMARK_DELAY_ADDR 0x00001058u"),
        ("--json", '"address": 4184'),
        ("--svd", "<name>OUTPUT_LENGTH</name>"),
        ("--base=4096", "output_length"),
    ],
)
def test_registers_of_a_role(option, says):
    result = trebuchet("role", "csr", "benchmark", option, "--base", "0x1000")
    assert result.returncode == 0, result.stderr
    assert says in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["csr", "nothing"], "there is no role 'nothing'; there are: "),
        (["csr", "ecg", "--c", "--json"], "choose one of --c, --json and --svd"),
        (["csr", "ecg", "--base", "three"], "the base must be an address, a multiple of 4"),
        (["new", "Ecg"], "a role's name must be"),
    ],
)
def test_errors_have_one_line(arguments, says):
    result = trebuchet("role", *arguments)
    assert result.returncode == 1
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
