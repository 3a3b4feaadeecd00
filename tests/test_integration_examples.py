"""The examples of cores in other designs (examples/cores), simulated as Verilator compiles them.

Each is generated, compiled and run: half a minute of processor time for the SoC with the TCP
engine, less for the others, so these tests are slow ones.
"""

import importlib.util
import random

import pytest
from lockstep_model import Lockstep, packet_into, packets_from
from net_frames import tcp_frame
from scapy.layers.inet import TCP
from scapy.layers.l2 import ARP, Ether
from trebuchet.integration.config import load_core
from trebuchet.integration.generator import generate
from trebuchet.models import crc32c

pytestmark = pytest.mark.slow

MAC, IP = bytes.fromhex("020000000001"), 0xC0000202
FIN, SYN, ACK = 0x01, 0x02, 0x10
LONGEST = 100  # lines of an example


def example(root, name):
    spec = importlib.util.spec_from_file_location(name, root / "examples" / "cores" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_examples_are_short(root):
    for path in (root / "examples" / "cores").iterdir():
        if path.is_file():
            assert len(path.read_text().splitlines()) < LONGEST, path


class Wire:
    """The frame pins of the SoC: sends and receives whole frames, a cycle at a time."""

    def __init__(self, top):
        self.top, self.beats, self.frames = top, [], []

    def send(self, frame):
        for word, size, _, last in packet_into(frame):
            while not self._step(
                rx_valid=1, rx_data=word, rx_last=last, rx_last_be=last << (size - 1)
            )["rx_ready"]:
                pass

    def _step(self, **inputs):
        seen = self.top.step(tx_ready=1, **inputs)
        if seen["tx_valid"]:
            size = seen["tx_last_be"].bit_length() if seen["tx_last"] else 4
            self.beats.append((seen["tx_data"], size, seen["tx_last"]))
            if seen["tx_last"]:
                self.frames += packets_from(self.beats)
                self.beats = []
        return seen

    def receive(self, limit=20_000):
        for _ in range(limit):
            if self.frames:
                return Ether(self.frames.pop(0))
            self._step()
        raise AssertionError(f"no frame within {limit} cycles")


FRAME_INPUTS = ("rx_valid", "rx_data", "rx_last", "rx_last_be", "tx_ready")
FRAME_OUTPUTS = ("rx_ready", "tx_valid", "tx_data", "tx_last", "tx_last_be")


@pytest.fixture(scope="module")
def greeter(root, tmp_path_factory):
    """The SoC's Verilog, and the folder with its memories."""
    module = example(root, "litex_tcp")
    folder = tmp_path_factory.mktemp("greeter")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        files = [path.resolve() for path in module.main(folder)]
    return module.GREETING, files, folder


def test_a_connection_to_the_soc_is_greeted_and_closed(greeter):
    greeting, files, folder = greeter
    pins = (FRAME_INPUTS, FRAME_OUTPUTS)
    with Lockstep(
        "greeter", "greeter", files, *pins, folder=folder, clock="sys_clk", reset=""
    ) as t:
        wire = Wire(t)
        for _ in range(100):  # its power-on reset
            t.step()
        request = Ether(src="02:de:ad:be:ef:07", dst="ff:ff:ff:ff:ff:ff") / ARP(
            hwsrc="02:de:ad:be:ef:07", psrc="192.168.1.200", pdst="192.0.2.2"
        )
        wire.send(bytes(request).ljust(60, b"\0"))
        assert wire.receive()[ARP].hwsrc == "02:00:00:00:00:01"
        for sport in (40000, 40001):
            _greeted(wire, greeting, sport)


def _greeted(wire, greeting, sport):
    """One connection from SYN to the last ACK."""

    def send(flags, seq, ack=0, data=b""):
        ports = {"sport": sport, "dport": 13}
        wire.send(tcp_frame(data, flags=flags, seq=seq, ack=ack, mac=MAC, ip=IP, **ports))

    send(SYN, 999)
    answer = wire.receive()[TCP]
    assert (answer.flags, answer.ack, answer.dport) == (SYN | ACK, 1000, sport)
    first = answer.seq + 1 & 0xFFFFFFFF
    send(ACK, 1000, first)
    data = wire.receive()[TCP]
    assert bytes(data.payload)[: len(greeting)] == greeting
    assert data.seq == first
    end = first + len(greeting)
    if not data.flags & FIN:
        assert wire.receive()[TCP].flags & FIN
    send(ACK | FIN, 1000, end + 1 & 0xFFFFFFFF, b"")
    assert wire.receive()[TCP].ack == 1001


def test_the_mesh_delivers_every_packet_in_order(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = [path.resolve() for path in example(root, "router_mesh").main(tmp_path)]
    counts = [f"{what}_{n}" for what in ("good", "bad") for n in range(4)]
    with Lockstep(
        "mesh", "mesh", files, (), counts, folder=tmp_path, clock="sys_clk", reset=""
    ) as top:
        for _ in range(3_000):
            seen = top.step()
    assert [seen[f"bad_{n}"] for n in range(4)] == [0] * 4
    # A beat a cycle, less the way there.
    assert min(seen[f"good_{n}"] for n in range(4)) > 3_000 // 8 * 0.9


def _frame_ports(way):
    return [f"{way}_{name}" for name in ("valid", "data", "empty", "last")]


def test_the_bridge_passes_frames_and_appends_a_checksum(root, tmp_path):
    folder = tmp_path / "core"
    generate(load_core("bridge", root / "examples" / "cores" / "bridge.toml"), folder)
    files = [root / "examples" / "cores" / "bridge_top.v", folder / "bridge_core.v"]
    inputs = [
        *_frame_ports("network_rx"),
        *_frame_ports("host_rx"),
        "network_tx_ready",
        "host_tx_ready",
    ]
    outputs = [
        *_frame_ports("network_tx"),
        *_frame_ports("host_tx"),
        "network_rx_ready",
        "host_rx_ready",
    ]
    rng = random.Random(1)
    sent = {
        way: [b"\x02" + rng.randbytes(rng.randint(63, 400)) for _ in range(5)]
        for way in ("network", "host")
    }
    beats = {way: [b for f in frames for b in packet_into(f)] for way, frames in sent.items()}
    got = {"network": [], "host": []}
    with Lockstep("bridge_top", "bridge_top", files, inputs, outputs, folder=tmp_path) as top:
        for _ in range(4_000):
            offers = {"network_tx_ready": rng.random() < 0.8, "host_tx_ready": rng.random() < 0.8}
            for way, waiting in beats.items():
                if waiting and rng.random() < 0.9:
                    word, size, _, last = waiting[0]
                    offers |= {f"{way}_rx_valid": 1, f"{way}_rx_data": word}
                    offers |= {f"{way}_rx_empty": 4 - size, f"{way}_rx_last": last}
            seen = top.step(**offers)
            for way, waiting in beats.items():
                if offers.get(f"{way}_rx_valid") and seen[f"{way}_rx_ready"]:
                    waiting.pop(0)
                if seen[f"{way}_tx_valid"] and offers[f"{way}_tx_ready"]:
                    last, empty = seen[f"{way}_tx_last"], seen[f"{way}_tx_empty"]
                    got[way].append((seen[f"{way}_tx_data"], 4 - empty, last))
    assert packets_from(got["host"]) == sent["network"]
    assert packets_from(got["network"]) == [
        frame + crc32c.crc32c(frame).to_bytes(4, "little") for frame in sent["host"]
    ]
