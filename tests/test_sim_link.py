"""The simulator's link, time, captures and waves, on tops that send back what they get."""

import json
import random
import signal
import socket
import subprocess
import threading

import pytest
from patience import wait_until
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.utils import rdpcap
from sim_tops import loopback, mirror, needs_network
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim.fabric import NOMINAL_HZ_SMALL
from trebuchet.sim.run import Board, run_batch

RATES = {"loss": 0.03, "reorder": 0.05, "duplicate": 0.02, "corrupt": 0.01}
LOAD = ["--load", "echo", "--clients", 400, "--time", "cycles:200", "--cycles", 600_000]


def link_arguments(rates=RATES):
    return [word for name, rate in rates.items() for word in (f"--{name}", rate)]


def through_mirror(board, data, port=4000):
    """Send ``data`` over a TCP connection that the mirror turns back to itself; what arrives."""
    with board.connect(port, source_port=port, timeout=60) as s:
        writer = threading.Thread(target=s.sendall, args=(data,))
        writer.start()
        received = bytearray()
        while len(received) < len(data):
            chunk = s.recv(65536)
            assert chunk, f"the connection ended after {len(received)} bytes"
            received += chunk
        writer.join()
    return bytes(received)


@needs_network
@pytest.mark.parametrize("stall", [0, 0.4])
def test_kernel_tcp_through_the_fabric_link(stall):
    data = random.Random(1).randbytes(300_000)
    with Board(mirror(), ["--stall", stall]) as board:
        assert through_mirror(board, data) == data
        stats = board.stats()
        assert stats["link_errors"] == 0
        assert stats["counters"]["mirror.frames"] > len(data) // 1460
        assert stats["counters"]["mirror.errors"] == 0
        assert board.close() == 0


@needs_network
def test_kernel_tcp_survives_the_bad_link():
    data = random.Random(2).randbytes(100_000)
    with Board(mirror(), [*link_arguments(), "--seed", 5]) as board:
        assert through_mirror(board, data) == data
        counters = board.counters()
    assert counters["mirror.errors"] > 0, "no frame with a bad FCS in a run that must have some"


@needs_network
def test_udp_arp_and_capture(tmp_path):
    capture = tmp_path / "link.pcap"
    payload = bytes(range(200))
    with Board(mirror(), ["--pcap", capture, "--clock-hz", 1e6]) as board:
        with board.socket(type=socket.SOCK_DGRAM) as s:
            s.settimeout(20)
            s.bind((board.host_ip, 99))
            s.sendto(payload, (board.ip, 99))
            assert s.recv(2000) == payload
        cycles = board.stats()["cycles"]
    frames = rdpcap(str(capture))
    assert frames[0][ARP].pdst == board.ip
    assert [f[ARP].op for f in frames if ARP in f][:2] == [1, 2]
    there, back = [f for f in frames if UDP in f and f[UDP].dport == 99]
    assert (there[IP].dst, back[IP].dst) == (board.ip, board.host_ip)
    assert bytes(there[UDP].payload) == bytes(back[UDP].payload) == payload
    assert 0 < float(there.time) < float(back.time) <= cycles / 1e6


def test_same_seed_same_run(tmp_path):
    def run(seed, name):
        arguments = [*LOAD, *link_arguments(), "--seed", seed, "--pcap", tmp_path / name]
        code, stats = run_batch(mirror(), arguments)
        assert code == 3, "nobody answers the clients, so the load cannot be complete"
        del stats["seconds"], stats["cycles_per_second"]
        return stats, (tmp_path / name).read_bytes()

    first, again, other = run(7, "a"), run(7, "b"), run(8, "c")
    assert first == again
    assert first[1] != other[1]


def test_impairments_have_the_rates_asked_for():
    _, stats = run_batch(mirror(), [*LOAD, *link_arguments(), "--seed", 3])
    for direction in ("to_board", "from_board"):
        link = stats[direction]
        n = link["frames"]
        assert n > 2000
        link["corrupt"] = link["corrupted_fcs"] + link["corrupted_payload"]
        for name, key in (
            ("loss", "lost"),
            ("reorder", "reordered"),
            ("duplicate", "duplicated"),
            ("corrupt", "corrupt"),
        ):
            expected = n * RATES[name]
            assert abs(link[key] - expected) < 5 * expected**0.5, (direction, name, link)
        assert link["corrupted_fcs"] > 0
        assert link["corrupted_payload"] > 0


def test_directions_can_be_impaired_separately():
    _, stats = run_batch(mirror(), [*LOAD, "--rx-loss", "100%"])
    assert stats["to_board"]["lost"] == stats["to_board"]["frames"] > 0
    assert stats["from_board"]["frames"] == stats["counters"]["mirror.frames"] == 0


def test_payload_corruption_passes_the_fcs_and_fails_a_checksum(tmp_path):
    capture = tmp_path / "link.pcap"
    arguments = [*LOAD, "--rx-corrupt", "100%", "--pcap", capture]
    _, stats = run_batch(mirror(), arguments)
    link = stats["to_board"]
    # What had a bad FCS never came back; what came back fails the load generator's checks.
    assert stats["counters"]["mirror.errors"] == link["corrupted_fcs"] > 100
    assert stats["counters"]["mirror.frames"] > 100
    assert stats["load"]["bad_checksums"] + stats["load"]["strays"] > 0
    good = 0
    for frame in rdpcap(str(capture)):
        if IP not in frame or TCP not in frame:
            continue
        sent = (frame[IP].chksum, frame[TCP].chksum)
        del frame[IP].chksum, frame[TCP].chksum
        rebuilt = Ether(bytes(frame))
        good += sent == (rebuilt[IP].chksum, rebuilt[TCP].chksum)
    # Flips in the MAC header (FCS cases) leave both checksums right, nothing else does.
    assert good <= 0.4 * link["frames"]


@pytest.mark.parametrize("period", [100, 1000])
def test_ticks_by_cycles(period):
    code, stats = run_batch(mirror(), ["--time", f"cycles:{period}", "--cycles", 100_000])
    assert code == 0
    assert stats["cycles"] == 100_000
    assert abs(stats["counters"]["mirror.ticks"] - 100_000 // period) <= 1


def test_wrong_use_of_a_batch_names_the_command():
    with pytest.raises(TrebuchetError, match=r"unknown option '--lost' .*\(ran: .*/sim --lost 1"):
        run_batch(mirror(), ["--lost", 1])


def test_ticks_by_the_wall_clock():
    code, stats = run_batch(mirror(), ["--time", "wall", "--seconds", 1, "--max-rate", 200_000])
    assert code == 0
    assert stats["cycles_per_second"] < 250_000
    # 1000 a second, less what a busy machine swallows.
    assert 100 <= stats["counters"]["mirror.ticks"] <= 1000 * stats["seconds"] + 1


@pytest.mark.nightly
def test_ticks_of_a_slow_simulation(tmp_path):
    """Waves make it slower than nominal: then a millisecond takes its nominal cycles, too."""
    arguments = ["--time", "wall", "--seconds", 1, "--trace", tmp_path / "waves.fst"]
    code, stats = run_batch(mirror(trace=True), arguments)
    assert code == 0
    most = 1000 * stats["cycles"] / NOMINAL_HZ_SMALL
    assert most < 900 * stats["seconds"], "not slow enough for this test"
    assert 0.5 * most - 2 <= stats["counters"]["mirror.ticks"] <= most + 1


def _fst_times(path):
    """Start and end time of a waves file (the header block of the FST format)."""
    header = path.read_bytes()[:329]
    assert header[0] == 0
    assert int.from_bytes(header[1:9], "big") == 329
    return int.from_bytes(header[9:17], "big"), int.from_bytes(header[17:25], "big")


def test_waves(tmp_path):
    waves = tmp_path / "waves.fst"
    arguments = ["--cycles", 3000, "--trace", waves, "--trace-from", 1000, "--clock-hz", 1e9]
    code, _ = run_batch(mirror(trace=True), [*arguments, "--time", "cycles:100"])
    assert code == 0
    start, end = _fst_times(waves)
    assert 1_000_000 <= start <= 1_020_000, "ps"
    assert 2_990_000 <= end <= 3_020_000
    assert b"mirror" in waves.read_bytes() or waves.stat().st_size > 1000


@needs_network
def test_board_link_with_preamble_and_fcs():
    """Frames of every size pass both ways; one with a bad FCS that comes back is noticed."""
    with Board(loopback()) as board, board.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(("tap0", 0x88B5))
        s.settimeout(20)
        rng = random.Random(4)
        for size in [1, 45, 46, 47, 500, 1499, 1500]:
            frame = b"\x02\0\0\0\0\x09" + b"\x02\0\0\0\0\x01" + b"\x88\xb5" + rng.randbytes(size)
            s.send(frame)
            assert s.recv(2000) == frame.ljust(60, b"\0")
        assert board.stats()["link_errors"] == 0
        assert board.close() == 0
    with Board(loopback(), ["--rx-corrupt", 1]) as board:
        with board.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind(("tap0", 0x88B5))
            s.send(bytes(12) + b"\x88\xb5" + bytes(50))
            wait_until(lambda: board.stats()["link_errors"], 20, "no error")
        assert "frame check sequence" in board.stats()["link_error"]
        assert board.close() == 1


@needs_network
def test_uart_pty():
    with Board(loopback(), uart="pty", time="soc") as board:
        with open(board.uart_device, "r+b", buffering=0) as uart:
            uart.write(b"hello\r\n\0\xff")
            received = b""
            while len(received) < 9:
                received += uart.read(9)
    assert received == b"hello\r\n\0\xff"


@needs_network
def test_uart_log():
    with Board(loopback(), time="cycles:100") as board:
        board.wait_uart("...", timeout=20)
        with pytest.raises(TrebuchetError, match="did not print 'x' within 0 s of simulated time"):
            board.wait_uart("x", timeout=0)


def test_uart_stdout():
    command = [loopback(), "--uart", "stdout", "--time", "cycles:10", "--cycles", "5500"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == b"....."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loss", "300%"], "--loss must be at most 1 (or 100%), not '300'"),
        (["--loss", "x"], "--loss must be a number of at least 0, not 'x'"),
        (["--cycles", "-1"], "--cycles must be a whole number, not '-1'"),
        (["--cycles"], "option --cycles needs a value"),
        (["--time", "noon"], "--time must be wall, soc or cycles:N, not 'noon'"),
        (["--lost", "1"], "unknown option '--lost' (see --help)"),
        (["--load", "echo"], "--load needs --time wall or --time cycles:N"),
        (["--uart", "tty"], "UART must be none, stdout, stdio, pty or file:PATH, not 'tty'"),
        (["--trace", "x.fst"], "this build of the simulator has no waves"),
    ],
)
def test_wrong_use_is_one_line(arguments, message):
    done = subprocess.run([mirror(), "--seconds", "1", *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"sim: {message}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_cleanly(number, tmp_path):
    stats = tmp_path / "stats.json"
    process = subprocess.Popen([mirror(), "--stats", stats], stderr=subprocess.PIPE)
    assert process.stderr.readline() == b"sim: seed 1\n"
    process.send_signal(number)
    assert process.wait() == 0
    process.stderr.close()
    assert json.loads(stats.read_text())["ended"] in ("interrupted", "terminated")
