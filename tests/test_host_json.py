"""`--json`: what commands print for programs, and that those without it have a reason."""

import io
import json
import sys
import zlib

import pytest
from fake_board import FakeBoard
from trebuchet.client.management import Reply
from trebuchet.host import cli
from trebuchet.host.cli import main
from trebuchet.models.config_block import pack
from trebuchet.models.image import MAIN_RAM, Image, Kind
from trebuchet.models.status import Status

#: Commands that print nothing which a program would read, or have another form for it.
WITHOUT = {
    "demo": "draws a picture; `ecg run` has it",
    "sim": "--stats writes JSON",
    "renode": "runs until it is ended",
    "run": "the output is that of the command that it runs",
    "cpu": "writes Verilog",
    "load": "its exit code says all",
    "flash": "its exit code says all",
    "console": "the output is the board's",
    "update": "its exit code says all",
    "jobd": "runs until it is ended",
    "node": "runs until it is ended",
    "nightly": "its results are the ledgers",
    "board new": "writes a file",
    "core generate": "writes files, a register map as JSON among them",
    "role new": "writes files",
    "ecg fetch": "its exit code says all",
    "ecg train": "writes files",
    "ecg figures": "writes files",
    "ecg weights load": "its exit code says all",
    "config pack": "writes a file",
    "config cluster": "writes files",
    "config message": "writes a file",
    "config send": "its exit code says all",
    "image pack": "writes a file",
    "image send": "its exit code says all",
    "web load": "its exit code says all",
    "store make": "writes a file",
}


def leaves(command, name):
    """Commands without commands of their own, by their whole name."""
    inner = getattr(command, "commands", None)
    if inner is None:
        return {name: command}
    return {
        whole: leaf
        for each, found in inner.items()
        for whole, leaf in leaves(found, f"{name} {each}").items()
    }


def test_every_command_has_it_or_a_reason():
    found = {}
    for name, entry in cli.COMMANDS.items():
        found |= leaves(cli.LazyCommand(name, entry).resolve(), name)
    with_it = {
        name
        for name, command in found.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert with_it.isdisjoint(WITHOUT)
    assert found.keys() - with_it == WITHOUT.keys()


def run(capsys, *words):
    """Exit code, and what is on stdout as JSON."""
    with pytest.raises(SystemExit) as left:
        main([*map(str, words), "--json"])
    out, err = capsys.readouterr()
    assert err == ""
    lines = words[0] == "manage"
    return left.value.code or 0, list(map(json.loads, out.splitlines())) if lines else json.loads(
        out
    )


def test_image_and_configuration(capsys, tmp_path):
    (tmp_path / "x.img").write_bytes(Image(Kind.firmware, "sim", "7", b"code", MAIN_RAM).pack())
    (tmp_path / "x.cfg").write_bytes(pack("ip=192.0.2.9\n", 3))
    assert run(capsys, "image", "show", tmp_path / "x.img") == (
        0,
        {"kind": "firmware", "board": "sim", "version": "7", "bytes": 4}
        | {"crc32": zlib.crc32(b"code"), "load": MAIN_RAM},
    )
    assert run(capsys, "config", "show", tmp_path / "x.cfg") == (
        *(0, {"sequence": 3, "text": "ip=192.0.2.9\n"}),
    )


def test_lists(capsys):
    roles = run(capsys, "role", "list")[1]
    assert "ecg" in [role["name"] for role in roles]
    cores = run(capsys, "core", "list")[1]
    assert {"tcp", "router"} <= {core["name"] for core in cores}
    assert all(each["title"] for each in (*roles, *cores))
    info = run(capsys, "ecg", "info")[1]
    assert info["classes"][0] == "N"
    assert set(info["networks"])


def test_a_board_file_that_is_right(capsys):
    code, found = run(capsys, "board", "check", "sim")
    assert code == 0
    assert found["board file"].startswith("simulated board")


COMMANDS = {"version": (Status.OK, "0.2.0\n"), "fly": (11, "error: BAD_ARGUMENT: no wings\n")}


def test_commands_of_a_board(capsys, monkeypatch):
    with FakeBoard(commands=COMMANDS) as fake:
        board = f"127.0.0.1:{fake.management}"
        good = {"command": "version", "status": "OK", "text": "0.2.0\n"}
        bad = {"command": "fly", "status": "BAD_ARGUMENT", "text": COMMANDS["fly"][1]}
        assert run(capsys, "manage", board, "version") == (0, [good])
        assert run(capsys, "manage", board, "fly") == (1, [bad])
        monkeypatch.setattr(sys, "stdin", io.StringIO("version\nfly\nversion\n"))
        assert run(capsys, "manage", board) == (1, [good, bad])
    assert Reply(*COMMANDS["version"]).good
