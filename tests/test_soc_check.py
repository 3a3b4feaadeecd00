"""`trebuchet board`: the list, and what a check finds before anything is built."""

import fcntl
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import trebuchet.boards
from trebuchet.boards import NAMES
from trebuchet.host.cli import app
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc import check as check_module
from trebuchet.soc.place import Placement
from typer.testing import CliRunner

TREE = Path(trebuchet.boards.__file__).parent


def run(*arguments):
    return CliRunner().invoke(app, ["board", *map(str, arguments)])


@pytest.fixture
def ported(tmp_path, root):
    """Writes the Logicbone's file as a user's, changed: ``ported((old, new), …)``."""

    def write(*changes):
        text = (TREE / "logicbone.py").read_text()
        text = text.replace("from . import", "from trebuchet.boards import")
        text = text.replace("from .", "from trebuchet.boards.")
        changes = (('name="logicbone"', 'name="test_check"'), *changes)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "my_board.py"
        path.write_text(text)
        return path

    yield write
    for name in ("test_check", "test_check.check"):
        shutil.rmtree(root / "build" / name, ignore_errors=True)


def fault(path):
    result = run("check", path)
    assert result.exit_code != 0
    assert isinstance(result.exception, TrebuchetError), result.exception
    message = str(result.exception)
    assert "\n" not in message
    return message


def test_the_list_has_every_board():
    rows = json.loads(run("list", "--json").stdout)
    assert [row["name"] for row in rows] == list(NAMES)
    versa = rows[-1]
    assert (versa["name"], versa["device"]) == ("versa_ecp5", "LFE5UM-45F-8BG381C")
    assert (versa["tcp"], versa["sessions"]) == ("lean", 64)
    assert 0.5 < versa["lut_share"] < 0.9
    assert versa["fmax_mhz"] >= versa["clock_mhz"]
    shown = run("list").stdout
    assert all(name in shown for name in NAMES)


def test_the_simulated_board_has_no_pins():
    assert run("check", "sim").stdout.splitlines()[-1] == "build it with: trebuchet build sim"


def test_a_memory_that_is_too_small(ported):
    message = fault(ported(("dram_bytes=1 << 30", "dram_bytes=1 << 20")))
    assert message.startswith("board 'test_check': 64 sessions need ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("return ecp5.area_options", "return 1 / 0, ecp5.area_options"),
            r"\S+my_board\.py:12: ZeroDivisionError: division by zero",
        ),
        (
            ('return ecp5.area_options(logicbone.Platform(device="45F"))', "return None"),
            r"platform\(\) must return a platform of LiteX, not None",
        ),
        (
            ("import MT41K512M16", "import MT41K512M17 as MT41K512M16"),
            r"\S+my_board\.py:16: ImportError: cannot import name 'MT41K512M17' from .*",
        ),
        (
            ("    ecp5.rgmii(soc)", '    raise KeyError("a\\nb")'),
            r"\S+my_board\.py:23: KeyError: 'a\\nb'",
        ),
        (
            ("attach=_attach", "attach=lambda: None"),
            r"\S+my_board\.py: TypeError: <lambda>\(\) takes 0 positional arguments .*",
        ),
        (("    soc.crg = ", "    raise SystemExit(0)\n    soc.crg = "), r"\S+py:21: SystemExit: 0"),
        (("attach=_attach", "attach=print"), "attach gives no crg: clocks"),
        (
            ("platform=_platform", 'platform=__import__("functools").partial(int, "x")'),
            "ValueError: invalid literal for int.*",
        ),
        (
            ("LFE5UM5G-45F", "LFE5UM5G-85F"),
            r"device is 'LFE5UM5G-85F-8BG381C', but platform\(\) is for 'LFE5UM5G-45F-8BG381C'; .*",
        ),
        (
            ("import MT41K512M16", "import MT41K64M16 as MT41K512M16"),
            "dram_bytes must be at most 134217728, which the memory of attach has, not 1073741824",
        ),
        (("ecp5.rgmii(soc)", "soc.ethphy = 5"), "ethphy of attach has no dw: Ethernet"),
        (
            ('= EcpFlashPads(soc.platform.request("spiflash"))', "= 1"),
            "flash_pads of attach has no clk, cs_n, mosi, miso: the flash",
        ),
        pytest.param(
            ('device="45F"', 'device="45F", toolchain="diamond"'),
            r"LiteX cannot build it: TypeError: .*'nowidelut'; see \S+/litex\.log",
            marks=pytest.mark.nightly,
        ),
        (("    ecp5.ddr3(soc, MT41K512M16)", ""), "attach gives no sdram: the external memory"),
        pytest.param(
            ("    ecp5.rgmii(soc)", ""),
            "attach gives no ethphy: Ethernet",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            ("udp_services=False", "udp_services=False, bridge=True"),
            "attach gives no host_ethphy: Ethernet of the host's port",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            ('    soc.flash_pads = EcpFlashPads(soc.platform.request("spiflash"))', ""),
            "attach gives no flash_pads: the flash",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_functions_that_go_wrong(ported, change, message):
    """Without a trace of our own code, and before anything is generated."""
    assert re.fullmatch(f"board 'test_check': {message}", fault(ported(change)))


@pytest.mark.nightly
def test_a_device_that_litex_does_not_know(ported):
    message = fault(ported(('device="45F"', 'device="12F"'), ("LFE5UM5G-45F", "LFE5UM5G-12F")))
    assert re.fullmatch(
        r"board 'test_check': LiteX cannot build it: KeyError: 'lfe5um5g-12f'; see \S+", message
    )


def run_apart(path):
    """The command as a user runs it, where LiteX may take its own output away."""
    command = [sys.executable, "-m", "trebuchet.host.cli", "board", "check", path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_no_other_check_comes_in_between(ported, root, monkeypatch):
    """Nor does a board's own build use the folder, whatever the board is called."""
    lock = root / "build" / "test_check.check.lock"
    held = []

    def seen(placement):
        with lock.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.append(placement.folder)

    monkeypatch.setattr(
        check_module, "generate_locked", lambda board, folder: Placement(folder, "top", 1)
    )
    for step in ("check_pins", "synthesise"):
        monkeypatch.setattr(check_module, step, seen)
    monkeypatch.setattr(
        check_module,
        "usage",
        lambda placement, routed: dict.fromkeys(("lut4", "ff", "bram", "dsp"), 1),
    )
    result = run("check", ported(), "--fit")
    assert result.exit_code == 0, result.output
    assert held == [root / "build" / "test_check.check"] * 2
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_litex_says_reaches_the_user(ported):
    """It sets sys.stderr to None."""
    result = run_apart(
        ported(
            (
                'return ecp5.area_options(logicbone.Platform(device="45F"))',
                'made = ecp5.area_options(logicbone.Platform(device="45F"))\n'
                "    pins = made.constraint_manager\n"
                '    pins.available = [p for p in pins.available if p[0] != "serial"]\n'
                "    return made",
            )
        )
    )
    assert result.returncode == 1
    assert re.fullmatch(
        r"trebuchet: board 'test_check': LiteX: serial UART not supported/found on board, .*; "
        r"see \S+/litex\.log\n",
        result.stderr,
    )


def test_ctrl_c_is_quiet(ported):
    result = run_apart(ported(("    soc.crg = ", "    raise KeyboardInterrupt\n    soc.crg = ")))
    assert result.returncode == 130
    assert "never used" not in result.stderr


@pytest.mark.parametrize("command", ["check", "build"])
def test_sizes_that_do_not_fit_are_told_before_anything_is_generated(ported, command, root):
    board = ported(('tcp="lean"', 'tcp="small", segment_bytes=1 << 17, sessions=8192'))
    result = CliRunner().invoke(
        app, [*(["board"] if command == "check" else []), command, str(board)]
    )
    assert re.fullmatch(
        r"board 'test_check': 8192 sessions need \d+ bytes of external memory; "
        "536870912 are the shell's; 33554432 hold results of up to 2032 bytes",
        str(result.exception),
    )
    assert not list((root / "build" / "test_check").glob("gateware/*.v"))


def test_a_role_whose_results_peers_cannot_have(ported):
    message = fault(ported(("plan=ONE_ECG", 'plan=ONE_ECG.of_roles("matmul"), peers=3')))
    assert message.startswith(
        "board 'test_check': its roles with segment_bytes=32768 and peers=3: log2 of a peer's "
    )


@pytest.mark.nightly
def test_a_signal_that_the_platform_does_not_have(ported):
    message = fault(ported(('request("spiflash")', 'request("spiflush")')))
    assert message == (
        "board 'test_check': platform and attach differ: Resource not found: spiflush:None"
    )


@pytest.mark.slow
def test_a_clock_that_the_pll_cannot_make(ported):
    message = fault(ported(("sys_clk_hz=60_000_000", "sys_clk_hz=400_000_000")))
    assert message.startswith(
        "board 'test_check': no setting of the PLL makes sys_clk_hz=400000000"
    )


@pytest.mark.nightly  # by day the README's `board check` is such a run
def test_a_good_file_passes(ported):
    result = run_apart(ported())
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    steps = [line.partition(":")[0] for line in result.stdout.splitlines()]
    assert steps == ["board file", "sizes", "platform", "pins", "build it with"]


@pytest.mark.slow
def test_a_pin_that_is_not_there_is_found(ported):
    wrong = (
        '    return ecp5.area_options(logicbone.Platform(device="45F"))',
        "    from litex.build.generic_platform import IOStandard, Pins, Subsignal\n"
        '    made = logicbone.Platform(device="45F")\n'
        "    made.constraint_manager.available = [\n"
        '        entry for entry in made.constraint_manager.available if entry[0] != "serial"\n'
        "    ]\n"
        '    pins = Subsignal("rx", Pins("B6")), Subsignal("tx", Pins("A77"))\n'
        '    made.add_extension([("serial", 0, *pins, IOStandard("LVCMOS33"))])\n'
        "    return ecp5.area_options(made)",
    )
    message = fault(ported(wrong))
    assert message == "'serial_tx' is on pin 'A77', which the package CABGA381 does not have"
