"""A board in the wire with engines in-line, whole: CRCs appended one way and checked the other."""

import random
import socket
import subprocess
import sys
import threading

import pytest
from e2e_clients import ECHO, echo
from patience import join
from sim_tops import needs_network
from trebuchet.models import crc32c
from trebuchet.models.plan import EngineEntry, Plan
from trebuchet.sim.bridge import BridgeBoard, bridge_source
from trebuchet.sim.build import build

pytestmark = [pytest.mark.nightly, needs_network]

#: Of experiments (IEEE 802, table 3): no kernel answers it.
ETHERTYPE = 0x88B5
PLAN = Plan(engines=tuple(map(EngineEntry.parse, ["outbound=crc32c", "inbound=crc32c:check=true"])))
#: Devices in the simulator's namespace and in the host's.
NETWORK, HOST = "tap0", "tap0h"


@pytest.fixture(scope="module")
def board():
    top = bridge_source(plan=PLAN, managed=False)
    with BridgeBoard(build(top), cwd=top.folder, uart="none") as running:
        running.wait_port(ECHO)
        yield running


def frames(rng, count):
    """Frames of all lengths that may come, none for the board; the longest can have a CRC yet."""
    sizes = [60, 61, 62, 63, 64, 1513, 1514]
    head = bytes.fromhex("5e0000000077 5e0000000078") + ETHERTYPE.to_bytes(2, "big")
    return [
        head + rng.randbytes(rng.choice([*sizes, rng.randint(60, 1514)]) - 14) for _ in range(count)
    ]


def _socket(board, device):
    made = board.socket(
        socket.AF_PACKET, socket.SOCK_RAW, within=board.host if device == HOST else None
    )
    made.bind((device, ETHERTYPE))
    made.settimeout(60)
    return made


def test_frames_both_ways_at_once(board):
    """Those of the host leave with a CRC; of the network's, those with the right one arrive."""
    rng = random.Random("inline")
    out, back = frames(rng, 120), []
    for frame in frames(rng, 120):
        with_crc, _ = crc32c.result(frame[:-4])
        back.append(with_crc if rng.random() < 0.5 else frame)
    good = [frame for frame in back if not crc32c.result(frame, check=True)[1]]
    assert 0 < len(good) < len(back)
    with _socket(board, NETWORK) as far, _socket(board, HOST) as near:
        got = {far: [], near: []}

        def send(made, given):
            for frame in given:
                made.send(frame)

        def receive(made, count):
            while len(got[made]) < count:
                got[made].append(made.recv(4096))

        work = [(send, far, back), (send, near, out)]
        work += [(receive, far, len(out)), (receive, near, len(good))]
        threads = [threading.Thread(target=f, args=args, daemon=True) for f, *args in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            join(thread, 120)
    assert got[far] == [crc32c.result(frame)[0] for frame in out]
    assert got[near] == good


def test_a_frame_without_room_for_a_crc_is_dropped(board):
    """Tagged, 1,515 bytes; 1,518 is the longest. The frames before and after it arrive."""
    rng = random.Random("long")
    first, last = frames(rng, 2)
    long = first[:12] + bytes.fromhex("81000001") + first[12:14] + bytes(1515 - 18)
    with _socket(board, NETWORK) as far, _socket(board, HOST) as near:
        for frame in (first, long, last):
            near.send(frame)
        assert [far.recv(4096) for _ in range(2)] == [crc32c.result(f)[0] for f in (first, last)]


@pytest.mark.parametrize("side", ["network", "host"])
def test_the_board_itself_answers_without_them(board, side):
    namespace = None if side == "network" else board.host
    with board.socket(within=namespace) as made:
        made.settimeout(60)
        made.connect((board.ip, ECHO))
        echo(made, random.Random(side).randbytes(20_000))


def test_the_link_has_had_no_fault(board):
    assert board.stats()["link_errors"] == 0


def test_the_command_reaches_the_host_behind_the_board():
    """`trebuchet sim --engine`: a command of its own network, and one of the host."""
    script = "$TREBUCHET_ON_HOST ip -o -4 address; ip -o -4 address"
    words = ["sim", "--engine", "outbound=crc32c", "--engine", "inbound=crc32c:check=true"]
    done = subprocess.run(
        [sys.executable, "-m", "trebuchet.host.cli", *words, "--exec", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[3] for line in done.stdout.splitlines() if "192.0.2" in line] == [
        "192.0.2.3/24",
        "192.0.2.1/24",
    ]
