"""Fields of a board file that options override: ``--clock``, ``--ip``, ``--set``."""

import json
import re

import pytest
from sim_tops import needs_network
from trebuchet.boards import NAMES, load_board
from trebuchet.boards.overrides import SETTABLE, Overrides
from trebuchet.host import run
from trebuchet.host.cli import app
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.plan import Plan
from trebuchet.sim.run import neighbour_ip
from trebuchet.soc import build as build_module
from trebuchet.soc.plans import (
    build_label,
    choices_report,
    overrides_of,
    sim_address,
    tcp_of,
    with_choices,
)
from typer.testing import CliRunner


@pytest.mark.parametrize(
    ("text", "hertz"),
    [
        ("50MHz", 50_000_000),
        ("62.5mhz", 62_500_000),
        ("1000kHz", 1_000_000),
        ("60000000", 60_000_000),
        ("60000000Hz", 60_000_000),
    ],
)
def test_clocks(text, hertz):
    assert Overrides.parse(clock=text).values == {"sys_clk_hz": hertz}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"clock": "60"},
            "--clock must be a frequency from 1 MHz, like 60MHz or 62500000, not '6",
        ),
        ({"clock": "fast"}, "--clock must be a frequency from 1 MHz, like 60MHz or 62500000, not "),
        ({"clock": "-5MHz"}, "--clock must be a frequency from 1 MHz, like 60MHz or 62500000, not"),
        ({"clock": "600MHz"}, "Board 'versa_ecp5': sys_clk_hz must be an integer from 1000000 to "),
        ({"ip": "10.0.0"}, "Board 'versa_ecp5': ip must be an IPv4 address of a host like 192.0.2"),
        ({"ip": "224.0.0.1"}, "Board 'versa_ecp5': ip must be an IPv4 address of a host like 192."),
        ({"settings": ["uart"]}, "--set must be FIELD=VALUE, such as uart_baud=9600, and again fo"),
        ({"settings": ["a=1,b=2"]}, "--set must be FIELD=VALUE, such as uart_baud=9600, and again"),
        ({"settings": ["uart_bd=1"]}, "--set uart_bd is not possible, did you mean 'uart_baud'?; "),
        ({"settings": ["device=x"]}, "--set device is not possible"),
        ({"settings": ["dhcp=1"]}, "Board 'versa_ecp5': dhcp must be one of (False, True), not 1"),
        ({"settings": ["uart_baud=x"]}, "Board 'versa_ecp5': uart_baud must be an integer from "),
        ({"settings": ["peers=1", "peers=2"]}, "--set peers is given twice; leave one of them out"),
        ({"settings": ["ip=10.0.0.1"], "ip": "10.0.0.2"}, "--ip and --set ip say the same; leave"),
    ],
)
def test_wrong_ones_are_refused_in_one_line(options, message):
    with pytest.raises(TrebuchetError, match=f"^{re.escape(message)}.*$"):
        with_choices(load_board("versa_ecp5"), overrides=overrides_of(**options))


def test_a_board_has_what_is_overridden_and_keeps_the_rest():
    board = load_board("versa_ecp5")
    chosen = overrides_of("50MHz", "198.51.100.7", ["dhcp=true", "isn_key=0x10"])
    changed = with_choices(board, overrides=chosen)
    values = {"sys_clk_hz": 50_000_000, "ip": "198.51.100.7", "dhcp": True, "isn_key": 16}
    assert changed.describe() == board.describe() | values
    assert with_choices(board, overrides=overrides_of()) is board


def test_every_field_that_can_be_set_is_a_plain_one_of_every_board():
    for name in NAMES:
        described = load_board(name).describe()
        assert all(isinstance(described[field], bool | int | str) for field in SETTABLE)


def test_builds_have_folders_of_their_own_and_say_what_was_chosen():
    plan, tcp = Plan.of_roles("loopback"), tcp_of("lean:cache=0")
    chosen = overrides_of("50MHz", "198.51.100.7")
    label = build_label("ulx3s", plan, None, chosen)
    assert label == "ulx3s_loopback_ip_198_51_100_7_sys_clk_hz_50000000"
    many = overrides_of("50MHz", "198.51.100.7", ["uart_baud=9600", "mac=02:00:00:00:00:07"])
    assert re.fullmatch("ulx3s_set_[0-9a-f]{8}", build_label("ulx3s", None, None, many))
    assert choices_report(plan, tcp, chosen) == {
        "plan": plan.describe(),
        "tcp": "lean",
        "cache": 0,
        "sys_clk_hz": 50_000_000,
        "ip": "198.51.100.7",
    }
    assert choices_report() == {}


def test_build_passes_them_on(monkeypatch, tmp_path):
    seen = {}

    def build_board(name, output, **options):
        seen.update(options)
        path = tmp_path / "gateware" / "top.bit"
        return {"board": "ulx3s", "project": str(tmp_path), "bitstream": str(path)} | {
            "used": {},
            "available": {},
        }

    monkeypatch.setattr(build_module, "build_board", build_board)
    words = ["build", "ulx3s", "--clock", "45MHz", "--set", "watchdog_ms=0"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert seen["overrides"].values == {"sys_clk_hz": 45_000_000, "watchdog_ms": 0}
    assert f"trebuchet load ulx3s --output {tmp_path}" in done.stdout.replace("\n", "")


def test_run_passes_them_on_and_takes_the_address(monkeypatch):
    called = []
    monkeypatch.setattr(run.os, "execv", lambda _, words: called.append(words) or 1 / 0)
    words = ["run", "sim", "--ip", "198.51.100.7", "--clock", "2MHz", "--", "status"]
    CliRunner().invoke(app, words)
    assert called[0][3:8] == ["sim", "--clock", "2MHz", "--ip", "198.51.100.7"]
    assert called[0][-1].endswith("status 198.51.100.7")


def test_the_simulated_network_is_around_the_boards_address():
    assert sim_address() == "192.0.2.2"
    assert sim_address(overrides_of(ip="198.51.100.7")) == "198.51.100.7"
    assert neighbour_ip("192.0.2.2", 1) == "192.0.2.1"
    assert neighbour_ip("192.0.2.1", 1) == "192.0.2.2"
    assert neighbour_ip("192.0.2.3", 3) == "192.0.2.4"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fabric", "--ip", "192.0.2.9"], "--clock, --ip and --set are for board, bridge, whose "),
        (["--boards", "2", "--ip", "192.0.2.9"], "--ip is for one board; leave it out with --boar"),
        (["--gdb", "0", "--clock", "2MHz"], "--gdb excludes --clock, --ip and --set; leave one"),
        (["--set", "uart_baud=200000"], "Board 'sim': uart_baud must be at most an eighth of sys"),
    ],
)
def test_sim_refuses_what_it_cannot_do(words, message, monkeypatch):
    monkeypatch.setattr("trebuchet.sim.cli.build", lambda *a, **k: pytest.fail("built"))
    done = CliRunner().invoke(app, ["sim", *words])
    assert isinstance(done.exception, TrebuchetError)
    assert str(done.exception).startswith(message)


@pytest.mark.slow
@needs_network
def test_a_simulated_board_of_another_address_answers_there(tmp_path):
    status = tmp_path / "status.json"
    cli = f"{run.sys.executable} -m trebuchet.host.cli"
    command = f"{cli} status $TREBUCHET_BOARD --json > {status}"
    words = ["sim", "--ip", "198.51.100.7", "--set", "mac=02:00:00:00:00:77", "--exec", command]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert json.loads(status.read_text())["uptime_ms"] >= 0
