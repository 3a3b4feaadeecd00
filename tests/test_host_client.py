"""The package as a client installs it: its own files, and the packages of its lock."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys

import pytest

PATHS = "import sys; sys.path[:0] = sys.argv[1:3]; "
COMMAND = "from trebuchet.host.cli import main; main(sys.argv[3:])"


@pytest.fixture(scope="module")
def client(root, tmp_path_factory):
    """Run a command of the installed package, without any other package than a client's."""
    folder = tmp_path_factory.mktemp("client")
    source, installed, others = (folder / name for name in ("source", "installed", "others"))
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (root / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, source / name)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", installed, source], check=True)
    others.mkdir()
    lock = (root / "requirements" / "client.lock").read_text()
    for package in re.findall(r"^([\w.-]+)==[^;\n]*$", lock, re.M):
        found = importlib.metadata.distribution(package)
        tops = {file.parts[0] for file in found.files} - {"..", "__pycache__"}
        for top in tops:
            (others / top).symlink_to(found.locate_file(top))

    def run(*arguments, program=COMMAND):
        command = [sys.executable, "-S", "-P", "-c", PATHS + program]
        command += [installed, others, *arguments]
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)

    run.installed = installed
    return run


#: Folders of the tree whose files an installed command may read, with what no command reads.
DATA = ("firmware", "jobd", "sim", "soc", "cores", "models", "boards", "client", "host")
DATA += ("integration", "bench/ledger", "bench/budgets.json", "formal/ledger")
UNUSED = ("sim/renode/", "sim/peers/")


def test_the_package_has_every_file_that_commands_read(client, root):
    """All tracked files of these folders, and nothing that pip did not find in the tree."""
    command = ["git", "ls-files", "-z", "--", *DATA]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode()
    wanted = {name for name in listed.split("\0") if name and (root / name).exists()}
    wanted |= {"__init__.py", "py.typed"}
    wanted = {n for n in wanted if n.endswith(".py") or not n.startswith(UNUSED)}
    package = client.installed / "trebuchet"
    found = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    found = {name for name in found if not name.endswith(".pyc")}
    assert sorted(wanted - found) == []
    assert sorted(found - wanted) == []


def test_an_installed_package_builds_outside_of_itself(client):
    program = "from trebuchet.models.paths import BUILD, IN_CHECKOUT; print(IN_CHECKOUT, BUILD)"
    cache = client.installed.parent / "cache"
    assert client(program=program).stdout == f"False {cache / 'trebuchet' / 'build'}\n"
    before = sorted(client.installed.rglob("*.json"))
    client("doctor")
    assert sorted(client.installed.rglob("*.json")) == before
    assert not (client.installed / "trebuchet" / "build").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("status", "127.0.0.1:1"),
        ("sessions", "127.0.0.1:1"),
        ("manage", "127.0.0.1:1", "version"),
    ],
)
def test_a_client_talks_to_boards(client, command):
    result = client(*command)
    assert result.stderr == (
        "trebuchet: cannot connect to 127.0.0.1:1: [Errno 111] Connection refused; "
        "`trebuchet discover` lists the boards of this network, and a simulated one is reached in "
        "`trebuchet sim shell` only\n"
    )
    assert result.returncode == 1


@pytest.mark.parametrize(
    "name", ["config", "image", "update", "doctor", "status", "manage", "measure"]
)
def test_commands_of_a_client_load(client, name):
    result = client(name, "--help")
    assert result.returncode == 0, result.stderr
    assert f"Usage: trebuchet {name}" in result.stdout


def test_the_library_needs_nothing_else(client):
    program = (
        "from trebuchet.client import Board, AsyncPool, TooLarge; import sys; "
        "print(sorted({'numpy', 'typer', 'rich'} & set(sys.modules)), Board('x').matmul.name); "
        "Board('x').ecg"
    )
    result = client(program=program)
    assert result.stdout == "[] matmul\n"
    assert result.stderr.splitlines()[-1] == (
        "trebuchet.client.errors.MissingPackage: the calls of role 'ecg' need the Python package "
        "'numpy'; install it with: pip install 'trebuchet[models]', or use "
        "role('ecg').call(data) with bytes"
    )


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [
        (("ecg", "run", "127.0.0.1"), "numpy", "models"),
        (("matmul", "run", "127.0.0.1"), "numpy", "models"),
        (("measure", "transfer", "127.0.0.1", "--plot", "a.png"), "matplotlib", "models"),
        (("load", "ecpix5"), "litex", "gateware"),
        (("core", "list"), "amaranth", "gateware"),
    ],
)
def test_what_a_client_lacks_is_named(client, command, package, extra):
    result = client(*command)
    assert result.returncode == 1
    assert result.stderr == (
        f"trebuchet: this command needs the Python package {package!r}, which is not installed; "
        f"install it with: pip install 'trebuchet[{extra}]' (in a checkout: make venv)\n"
    )


@pytest.mark.parametrize("name", ["renode", "cpu", "prove", "bench", "nightly"])
def test_what_needs_the_source_tree_says_so(client, name):
    result = client(name, "--help")
    assert result.returncode == 1
    assert result.stderr == (
        f"trebuchet: `trebuchet {name}` needs the project's source tree, which an installed "
        "package lacks; run it in a checkout, after `make venv`\n"
    )
