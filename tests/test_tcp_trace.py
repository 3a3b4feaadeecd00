"""Trace events of the TCP engine: a line for each counted event and each change of phase."""

import shlex
import sys
from dataclasses import replace

import pytest
from sim_tops import needs_network
from tcp_bench import ACK, FIN, M32, SMALL, Peer, Service, World
from test_tcp_cached import CONFIG as CACHED
from trebuchet.cores.tcp.registers import counters
from trebuchet.host.cli import app
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim.tops import source
from typer.testing import CliRunner

CONFIGS = {"block RAM": SMALL, "cached": CACHED}


def events_of(text):
    """Events in the order of their lines: (engine, event, the other values by name)."""
    found = []
    for line in text.splitlines():
        if line.startswith("tcp-event "):
            values = dict(pair.split("=") for pair in line.split()[1:])
            assert int(values.pop("tick")) >= 0
            found.append((values.pop("engine"), values.pop("event"), values))
    return found


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_what_happens_to_a_session_is_told_in_order(config, capsys):
    told = {}

    async def script(ctx, world):
        stray = Peer(world, rport=1)
        stray.raw(77)  # belongs to no session
        await stray.get(ctx)
        peer = Peer(world)
        await peer.open(ctx)
        told["peer"] = peer.isn + 1, peer.ack
        peer.send(bytes(50))
        await peer.expect(ctx)
        peer.raw(peer.seq - 50, data=bytes(50))  # nothing new
        await peer.get(ctx)
        peer.send(flags=ACK | FIN)
        world.services[0].send(0, b"", close=True)
        while not (s := await peer.get(ctx))["flags"] & FIN:
            pass
        peer.ack = (s["seq"] + 1) & M32
        peer.send()
        await world.drained(ctx)
        told["counts"] = {name: world.csr(ctx, name) for name in counters(world.config)}

    services = [Service() for _ in range(3)]
    World(replace(config, trace=True), services=services).run(script)
    found = events_of(capsys.readouterr().out)
    assert ("receive", "unknown", {}) in found
    phases = [(v["from"], v["to"]) for _, event, v in found if event == "phase"]
    assert phases == [
        ("FREE", "SYN_RCVD"), ("SYN_RCVD", "OPEN"), ("OPEN", "TIME_WAIT"), ("TIME_WAIT", "FREE")
    ]  # fmt: skip
    rcv_nxt, snd_una = told["peer"]
    (dup,) = [values for _, event, values in found if event == "dup"]
    assert dup["session"] == "0"
    assert (int(dup["snd_una"]), int(dup["rcv_nxt"])) == (snd_una, rcv_nxt + 50)
    for name, count in told["counts"].items():
        assert sum(event == name for _, event, _ in found) == count


def test_without_it_nothing_is_printed(capsys):
    async def script(ctx, world):
        await Peer(world).open(ctx)

    World().run(script)
    assert not events_of(capsys.readouterr().out)


TALK = """
import os, socket
with socket.create_connection((os.environ["TREBUCHET_BOARD"], 7)) as echo:
    echo.sendall(b"hello")
    assert echo.recv(5) == b"hello"
"""


@pytest.mark.nightly
@needs_network
def test_the_simulator_writes_them_to_a_file(tmp_path):
    """A real client of the Verilated shell; what else is printed stays where it was."""
    path, stats = tmp_path / "events.txt", tmp_path / "stats.json"
    command = shlex.join([sys.executable, "-c", TALK])
    words = ["sim", "--fabric", "--events", str(path), "--stats", str(stats), "--exec", command]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "tcp-event" not in done.output
    found = events_of(path.read_text())
    opened = [values["session"] for _, event, values in found if event == "established"]
    # One to see whether the board is there, one that talks.
    assert len(opened) == 2
    phases = [(v["from"], v["to"]) for _, e, v in found if (e, v.get("session")) == ("phase", "1")]
    assert phases[:2] == [("FREE", "SYN_RCVD"), ("SYN_RCVD", "OPEN")]
    assert stats.read_text().startswith("{")


def test_tops_without_an_engine_have_no_events():
    message = "^only board, bridge, fabric have a TCP engine that tells events, not mirror$"
    with pytest.raises(TrebuchetError, match=message):
        source("mirror", events=True)
    done = CliRunner().invoke(app, ["sim", "--gdb", "0", "--events", "x"])
    assert done.exit_code != 0
    assert str(done.exception) == "--gdb and --events exclude each other; leave one of them out"
