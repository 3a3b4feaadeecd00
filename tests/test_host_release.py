"""``trebuchet release``: what it collects, what it refuses; tasks of editors."""

import hashlib
import json
import re
import shlex
import subprocess

import pytest
from trebuchet.host import release
from trebuchet.host.cli import COMMANDS
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.paths import TREE


def built(build, name="ulx3s", board="ulx3s", bits=b"bits", **more):
    """A build as ``trebuchet build`` leaves it."""
    folder = build / name
    (folder / "gateware").mkdir(parents=True)
    bitstream = folder / "gateware" / "top.bit"
    bitstream.write_bytes(bits)
    (folder / "registers.json").write_text("{}")
    report = {"board": board, "bitstream": str(bitstream), "floorplan": None, **more}
    report.setdefault("bitstream_sha256", hashlib.sha256(bits).hexdigest())
    (folder / "report.json").write_text(json.dumps(report))
    return folder


def test_what_is_built_is_collected_with_checksums(tmp_path):
    build, out = tmp_path / "build", tmp_path / "out"
    built(build)
    built(build, "versa_ecp5_lean", "versa_ecp5", b"other", overrides={"tcp": "lean"})
    (build / "sim").mkdir()
    (build / "sim" / "report.json").write_text("[]")
    target, names = release.collect(out, [], build)
    assert names == ["ulx3s", "versa_ecp5_lean"]
    assert (target / "ulx3s" / "top.bit").read_bytes() == b"bits"
    assert json.loads((target / "ulx3s" / "report.json").read_text())["bitstream"] == "top.bit"
    said = json.loads((target / "RELEASE.json").read_text())
    assert said["builds"]["versa_ecp5_lean"]["overrides"] == {"tcp": "lean"}
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", release.SUMS],
        cwd=target,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    listed = {line.split("  ", 1)[1] for line in (target / release.SUMS).read_text().splitlines()}
    there = {p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file()}
    assert listed == there - {release.SUMS}
    assert {"CHANGES.md", "ulx3s/registers.json"} <= listed
    # The next one replaces it, with fewer boards.
    target, names = release.collect(out, ["ulx3s"], build)
    assert names == ["ulx3s"]
    assert not (target / "versa_ecp5_lean").exists()
    assert [path.name for path in out.iterdir()] == [target.name]


def test_the_changes_are_those_of_the_version(tmp_path):
    log = tmp_path / "CHANGELOG.md"
    log.write_text("# Changes\n\n## 0.2.0\n\n- new\n\n## 0.1.0\n\n- old\n")
    assert release.changes("0.2.0", log) == "## 0.2.0\n\n- new\n"
    assert release.changes("0.1.0", log) == "## 0.1.0\n\n- old\n"
    with pytest.raises(TrebuchetError, match=r"must have a section '## 0\.3\.0'"):
        release.changes("0.3.0", log)


def _gone(folder):
    (folder / "gateware" / "top.bit").unlink()


def _changed(folder):
    (folder / "gateware" / "top.bit").write_bytes(b"others")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_gone, r".*top\.bit of its report is gone; build it again with: trebuchet build ulx3s"),
        (
            _changed,
            r".*top\.bit is not what the build in .* reported; build it again with: .*fresh",
        ),
    ],
)
def test_nothing_is_left_of_a_release_that_fails(tmp_path, spoil, message):
    build, out = tmp_path / "build", tmp_path / "out"
    spoil(built(build))
    with pytest.raises(TrebuchetError, match=f"^{message}$"):
        release.collect(out, [], build)
    assert list(out.iterdir()) == []


def test_what_cannot_be_collected_is_told(tmp_path):
    build, out = tmp_path / "build", tmp_path / "out"
    with pytest.raises(TrebuchetError, match="^no board in .*; build one with: trebuchet build N"):
        release.collect(out, [], build)
    built(build)
    with pytest.raises(TrebuchetError, match="^board 'ecpix5' has no bitstream in .*build ecpix5$"):
        release.collect(out, ["ulx3s", "ecpix5"], build)
    target, _ = release.collect(out, [], build)
    (target / release.SUMS).unlink()
    with pytest.raises(TrebuchetError, match="is there and is no release; choose another --output"):
        release.collect(out, [], build)
    assert target.is_dir()


def test_editors_call_what_exists():
    tasks = json.loads((TREE / ".vscode" / "tasks.json").read_text())["tasks"]
    targets = set(re.findall(r"^([a-z]+):.*##", (TREE / "Makefile").read_text(), re.MULTILINE))
    for task in tasks:
        words = shlex.split(task["command"])
        if words[0] == "make":
            assert words[1] in targets
        elif words[0].endswith("/trebuchet"):
            assert words[1] in COMMANDS
        else:
            assert words[:3] == [".venv/bin/python", "-m", "pytest"]
    container = json.loads((TREE / ".devcontainer" / "devcontainer.json").read_text())
    assert container["postCreateCommand"] == "make venv"
    for name in ("settings", "extensions"):
        assert json.loads((TREE / ".vscode" / f"{name}.json").read_text())
