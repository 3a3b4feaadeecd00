"""Save files beside waves: names from the FST file, groups, the formats of both viewers."""

import random
import re
import subprocess
import sys
import zlib

import pytest
from sim_tops import needs_network
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim.wave_names import Signal, signals, unpack_lz4
from trebuchet.sim.wave_views import MOST, groups, gtkwave, surfer, write_views


def _hierarchy():
    """Two scopes with attributes, a vector, and an alias."""
    variable = bytes([16, 1]) + b"clk\0" + bytes([1, 0])
    vector = bytes([16, 1]) + b"eth_rx_data [7:0]\0" + bytes([8, 0x80, 1])
    attribute = bytes([252, 0, 1]) + b"note\0" + bytes([0x81, 2])
    inner = bytes([254, 0]) + b"sim\0comp\0" + variable + bytes([255])
    return bytes([254, 0]) + b"TOP\0\0" + attribute + variable + vector + bytes([253]) + inner


def _fst(kind, packed, unpacked):
    body = len(unpacked).to_bytes(8, "big") + packed
    other = b"\x03" + (8).to_bytes(8, "big")
    return other + bytes([kind]) + (len(body) + 8).to_bytes(8, "big") + body


def _literals(data):
    """LZ4 without a match."""
    length = len(data) - 15
    return bytes([0xF0]) + b"\xff" * (length // 255) + bytes([length % 255]) + data


FOUND = [
    Signal(("TOP",), "clk", ""),
    Signal(("TOP",), "eth_rx_data", "[7:0]"),
    Signal(("TOP", "sim"), "clk", ""),
]


def test_names_are_read_from_each_form_of_hierarchy(tmp_path):
    data, path = _hierarchy(), tmp_path / "x.fst"
    gzip = zlib.compressobj(wbits=31)
    for kind, packed in ((6, _literals(data)), (4, gzip.compress(data) + gzip.flush())):
        path.write_bytes(_fst(kind, packed, data))
        assert signals(path) == FOUND


def test_lz4_repeats_overlapping_matches():
    # Four literals, a match of 4 + 6 from two back; three literals at the end.
    packed = bytes([0x46]) + b"abcd" + (2).to_bytes(2, "little") + bytes([0x30]) + b"xyz"
    assert unpack_lz4(packed) == b"abcd" + b"cd" * 5 + b"xyz"
    long = bytes([0x1F]) + b"a" + (1).to_bytes(2, "little") + bytes([255, 3]) + bytes([0x10]) + b"z"
    assert unpack_lz4(long) == b"a" * (1 + 4 + 15 + 255 + 3) + b"z"


def test_broken_files_are_told(tmp_path):
    path = tmp_path / "x.fst"
    whole = _fst(6, _literals(_hierarchy()), _hierarchy())
    chance = random.Random(4)
    cases = [b"", b"\x03", whole[:40], whole[:-20], _fst(6, b"\x01\0\0\0", b"")]
    cases += [bytes(chance.randrange(256) for _ in range(60)) for _ in range(50)]
    for data in cases:
        path.write_bytes(data)
        with pytest.raises(
            TrebuchetError, match="cannot read the names of waves .*; is it a whole"
        ):
            signals(path)
    with pytest.raises(TrebuchetError, match="cannot read waves .*: No such file"):
        signals(tmp_path / "none.fst")


def _shell():
    shell = ("TOP", "sim", "trebuchet_shell_instance")
    yield from (Signal(("TOP",), name, "") for name in ("sys_clk", "sys_rst", "tick", "unknown"))
    yield from (Signal(("TOP",), f"eth_rx_{name}", "") for name in ("valid", "ready"))
    yield Signal(("TOP",), "eth_rx_data", "[7:0]")
    for name in ("rx__payload__data", "rx__ready", "rx__valid", "only__valid", "csr__state", "x"):
        yield Signal((*shell, "classifier"), name, "[31:0]" if "data" in name else "")
    for name in ("mem__valid", "mem__ready"):
        yield Signal((*shell, "U$7"), name, "")
        yield Signal((*shell, "classifier", "inner"), name, "")
    for number in range(2 * MOST):
        yield Signal(shell, f"s{number}__valid", "")
        yield Signal(shell, f"s{number}__ready", "")


def test_groups_are_ports_and_streams():
    chosen = groups(list(_shell()))
    names = {group: [signal.name for signal in found] for group, found in chosen.items()}
    assert list(names) == ["clock and reset", "eth rx", "classifier", "shell"]
    assert names["clock and reset"] == ["sys_clk", "sys_rst", "tick"]
    assert names["eth rx"] == ["eth_rx_valid", "eth_rx_ready", "eth_rx_data"]
    assert names["classifier"] == ["rx__ready", "rx__valid", "rx__payload__data", "csr__state"]
    assert len(names["shell"]) == MOST
    assert groups([]) == {}


def test_formats(tmp_path):
    chosen = {"eth rx": [Signal(("TOP",), "a", ""), Signal(("TOP", "s"), "b", "[7:0]")]}
    assert gtkwave(tmp_path / "x.fst", chosen).splitlines() == [
        f'[dumpfile] "{tmp_path}/x.fst"',
        "@800200",
        "-eth rx",
        "@28",
        "TOP.a",
        "@22",
        "TOP.s.b[7:0]",
        "@1000200",
        "-eth rx",
    ]
    assert surfer(chosen) == (
        "divider_add eth rx\nvariable_add TOP.a\nvariable_add TOP.s.b\nzoom_fit\n"
    )


@pytest.mark.slow
@needs_network
def test_the_simulator_writes_both_and_names_signals_that_exist(tmp_path):
    waves = tmp_path / "m.fst"
    command = [sys.executable, "-m", "trebuchet.host.cli", "sim", "mirror", "--trace", str(waves)]
    done = subprocess.run([*command, "--exec", "true"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "surfer --command-file" in done.stderr.replace("\n", " ")
    known = {signal.path for signal in signals(waves)}
    shown = re.findall(r"^variable_add (.*)$", (tmp_path / "m.sucl").read_text(), re.MULTILINE)
    assert shown
    assert set(shown) <= known
    save = (tmp_path / "m.gtkw").read_text().splitlines()
    lines = {re.sub(r"\[[0-9:]+\]$", "", line) for line in save if line.startswith("TOP.")}
    assert lines == set(shown)
    assert write_views(waves) == (tmp_path / "m.gtkw", tmp_path / "m.sucl")
