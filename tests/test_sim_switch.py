"""The switch between simulated boards: forwarding, rates, delays, queues, ECN, PFC, faults."""

import json
import subprocess
from pathlib import Path

import pytest
from trebuchet.models.net import checksum
from trebuchet.sim.build import HARNESS as SHARED
from trebuchet.sim.fleet.build import HARNESS

OVERHEAD = 24
HOSTS = [bytes([2, 0, 0, 0, 0, k]) for k in range(8)]


@pytest.fixture(scope="module")
def bench(root):
    folder = root / "build" / "switch_bench"
    folder.mkdir(parents=True, exist_ok=True)
    sources = [HARNESS / n for n in ("switch_bench.cpp", "switch.cpp", "plan.cpp")]
    sources += [SHARED / n for n in ("impair.cpp", "common.cpp")]
    newest = max(p.stat().st_mtime for d in (HARNESS, SHARED) for p in d.glob("*.[ch]*"))
    binary = folder / "bench"
    if not binary.exists() or binary.stat().st_mtime < newest:
        includes = [f"-I{SHARED}", f"-I{HARNESS}"]
        subprocess.run(["g++", "-std=c++17", "-O1", *includes, "-o", binary, *sources], check=True)
    return binary


def ip_frame(to, source, size=1000, dscp=0, ecn=0):
    header = bytearray(20)
    header[0], header[1] = 0x45, dscp << 2 | ecn
    header[2:4] = (size - 14).to_bytes(2, "big")
    header[10:12] = checksum(header).to_bytes(2, "big")
    return HOSTS[to] + HOSTS[source] + b"\x08\x00" + bytes(header) + bytes(size - 34)


def hello(source):
    """Lets the switch learn where ``source`` is."""
    return b"\xff" * 6 + HOSTS[source] + b"\x88\xb5" + bytes(46)


def simulate(bench: Path, ports, events, end, seed=1):
    """``(frames that came out as (cycle, port, bytes), statistics)``."""
    lines = [f"port p{k} {options}" for k, options in enumerate(ports)]
    for at, port, frame, *bad in events:
        lines.append(f"{at} {port} {frame.hex()}{' bad' if bad else ''}")
    lines.append(f"{end} end")
    done = subprocess.run(
        [bench, str(seed)], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    *out, stats = done.stdout.splitlines()
    frames = [(int(at), int(port), bytes.fromhex(h)) for at, port, h, *_ in map(str.split, out)]
    return frames, json.loads(stats)


LEARN = [(k, k, hello(k)) for k in range(4)]
START = 3000


def after_start(frames):
    return [f for f in frames if f[0] >= START]


def test_forwarding(bench):
    """Unknown and group addresses go to all others, known ones to one, to itself to nobody."""
    events = [
        (0, 0, ip_frame(1, 0)),
        *[(at + START, port, frame) for at, port, frame in LEARN],
        (2 * START, 0, ip_frame(1, 0)),
        (2 * START + 1, 2, ip_frame(2, 2)),
        (2 * START + 2, 3, ip_frame(0, 3), "bad"),
        (2 * START + 3, 3, b"\x01\x80\xc2\x00\x00\x0e" + ip_frame(0, 3)[6:]),
    ]
    frames, stats = simulate(bench, ["rate=1"] * 4, events, 4 * START)
    flooded = [f for f in frames if f[0] < START]
    assert sorted(port for _, port, _ in flooded) == [1, 2, 3]
    assert [f[1:] for f in frames if f[0] >= 2 * START] == [(1, ip_frame(1, 0))]
    assert stats["p3"]["bad_fcs"] == 1
    assert stats["p0"]["flooded"] == 2


def test_rate_and_delay(bench):
    """A wire of half a byte a cycle: spacing by length and overhead; delays of both links add."""
    ports = ["rate=1 up_delay=100", "rate=0.5 down_delay=40"]
    events = LEARN[:2] + [(START, 0, ip_frame(1, 0, 500)) for _ in range(5)]
    frames, _ = simulate(bench, ports, events, 10_000)
    times = [at for at, port, _ in after_start(frames) if port == 1]
    assert times[0] == START + 100 + 40
    assert [b - a for a, b in zip(times, times[1:], strict=False)] == [(500 + OVERHEAD) * 2] * 4


def test_order_and_completeness_without_faults(bench):
    events = LEARN + [(START + k, k % 2, ip_frame(2, k % 2, 60 + k)) for k in range(200)]
    frames, stats = simulate(bench, ["rate=1"] * 4, events, 60_000)
    got = [f for _, port, f in after_start(frames) if port == 2]
    for source in (0, 1):
        mine = [f for f in got if f[6:12] == HOSTS[source]]
        assert mine == [ip_frame(2, source, 60 + k) for k in range(200) if k % 2 == source]
    assert stats["p2"]["queue_drops"] == 0


def incast(dscp=0, ecn=0, count=60):
    """Three senders at one receiver, each at full rate."""
    gap = 1000 + OVERHEAD
    return LEARN + [
        (START + k * gap, source, ip_frame(3, source, 1000, dscp, ecn))
        for k in range(count)
        for source in range(3)
    ]


def test_a_full_queue_drops(bench):
    frames, stats = simulate(bench, ["rate=1 queue=8000"] * 4, incast(), 250_000)
    drops = stats["p3"]["queue_drops"]
    assert drops > 0
    assert len([f for f in after_start(frames) if f[1] == 3]) == 180 - drops
    assert stats["p3"]["queue_max"] <= 8000


@pytest.mark.parametrize("ecn", [0, 1, 2, 3])
def test_ecn_marks(bench, ecn):
    """Above the upper threshold each capable packet is marked; its checksum stays right."""
    options = "rate=1 queue=200000 ecn_min=4000 ecn_max=16000 ecn_chance=0.2"
    frames, stats = simulate(bench, [options] * 4, incast(ecn=ecn), 250_000)
    got = [f for at, port, f in after_start(frames) if port == 3]
    assert len(got) == 180
    marks = [f[15] & 3 for f in got]
    assert all(checksum(f[14:34]) == 0 for f in got)
    if ecn in (0, 3):
        assert set(marks) == {ecn}
        assert stats["p3"]["marked"] == 0
    else:
        assert set(marks) == {ecn, 3}
        assert stats["p3"]["marked"] == marks.count(3)
        assert marks[:3] == [ecn] * 3, "an empty queue marks nothing"
        assert marks[-1] == 3, "a long one marks all"


def pauses(frames, port):
    """``(cycle, classes, quanta)`` of the PFC frames to a port."""
    return [
        (at, f[17], max(int.from_bytes(f[18 + 2 * k : 20 + 2 * k], "big") for k in range(8)))
        for at, to, f in frames
        if to == port and f[12:16] == b"\x88\x08\x01\x01"
    ]


def test_pfc_pauses_senders_and_releases_them(bench):
    """DSCP 24 is class 3. Senders that go on are told to wait once, and released at the end."""
    options = "rate=1 queue=200000 lossless=8 xoff=5000 xon=2500"
    frames, stats = simulate(bench, [options] * 4, incast(dscp=24), 400_000)
    assert len([f for f in after_start(frames) if f[1] == 3]) == 180
    for sender in range(3):
        (stop, classes, quanta), (go, same, none) = pauses(frames, sender)
        assert (classes, quanta, same, none) == (8, 0xFFFF, 8, 0)
        assert stop < go
    assert pauses(frames, 3) == []
    assert stats["p3"]["lossless_drops"] == stats["p3"]["queue_drops"] == 0


def test_pfc_is_obeyed_by_class(bench):
    """A device pauses class 3 for 100 quanta: others go on, those of class 3 wait so long."""
    quanta = bytes(6) + (100).to_bytes(2, "big") + bytes(8)
    pause = b"\x01\x80\xc2\x00\x00\x01" + HOSTS[1] + b"\x88\x08\x01\x01\x00\x08" + quanta
    events = LEARN[:2] + [
        (START, 1, pause.ljust(60, b"\0")),
        (START + 10, 0, ip_frame(1, 0, 200, dscp=24)),
        (START + 11, 0, ip_frame(1, 0, 200)),
    ]
    frames, stats = simulate(bench, ["rate=1"] * 2, events, 20_000)
    (first, _, other), (second, _, paused) = after_start(frames)
    assert (other[15] >> 2, paused[15] >> 2) == (0, 24)
    assert first < START + 100
    assert second == START + 6400
    assert stats["p1"]["pauses_received"] == 1


def test_faults_are_those_of_the_impairer(bench):
    """Loss, duplication, reordering and corruption, counted, and the same again for a seed."""
    faults = "up_loss=0.1 up_duplicate=0.1 up_reorder=0.1 up_corrupt=0.1"
    ports = [f"rate=1 {faults}", "rate=1"]
    events = LEARN[1:2] + [(START + 400 * k, 0, ip_frame(1, 0, 200 + k)) for k in range(200)]
    frames, stats = simulate(bench, ports, events, 200_000)
    up = stats["p0"]["up"]
    assert min(up[k] for k in ("lost", "duplicated", "reordered", "corrupted_fcs")) > 5
    got = [f for at, port, f in after_start(frames) if port == 1]
    assert len(got) == 200 - up["lost"] + up["duplicated"] - stats["p0"]["bad_fcs"]
    lengths = [len(f) for f in got]
    assert lengths != sorted(lengths)
    assert simulate(bench, ports, events, 200_000)[0] == frames
    assert simulate(bench, ports, events, 200_000, seed=2)[0] != frames


def test_bad_plans(bench):
    for line, message in (
        ("port p0 rate=x", "rate must be a number of at least 0, not 'x'"),
        ("port p0 rate=0", "a port needs a name and a rate"),
        ("port p0 speed=1", "a port has no option 'speed'"),
        ("port p0 loss", "'loss' must be KEY=VALUE"),
    ):
        done = subprocess.run([bench], input=line, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.strip()) == (2, message)
