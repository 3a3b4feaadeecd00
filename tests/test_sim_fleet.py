"""Four whole boards on a switch, with firmware of their own each, and this machine beside them."""

import json
import subprocess
import sys

import pytest
from patience import wait_until
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim.fleet.build import build_fleet, fleet_source
from trebuchet.sim.fleet.firmware import _replace, board_folder
from trebuchet.sim.fleet.run import Fleet
from trebuchet.sim.fleet.topology import PEERS, parse
from trebuchet.sim.tops import source

#: Compiling four boards, and waiting for them, takes minutes.
pytestmark = pytest.mark.cpu_limit(1500)

COMMAND = [sys.executable, "-m", "trebuchet.host.cli"]
BAD_LINK = {"loss": "5%", "reorder": "5%", "duplicate": "2%", "delay": 20, "rate": 500}


@pytest.fixture(scope="module")
def mirrors(root):
    """Three small tops without CPU; each sends back what it gets. The last link loses a lot."""
    topology = parse({"boards": [{}, {"link": {"delay": 50}}, {"link": {"loss": "30%"}}]})
    with Fleet(topology, build_fleet(source("mirror")), [root] * 3, idle_sleep=True) as fleet:
        yield fleet


def echo(s, data):
    s.sendall(data)
    take(s, data)


def take(s, data):
    """Receive what must be ``data``."""
    got = b""
    while len(got) < len(data):
        chunk = s.recv(4096)
        assert chunk, "the connection ended early"
        got += chunk
    assert got == data


def meet(fleet, board, port, data):
    """A TCP connection that meets itself in the mirror (sim/mirror.py): all comes back."""
    with fleet.socket() as s:
        s.settimeout(600)
        s.bind((fleet.topology.host_ip, port))
        s.connect((board.ip, port))
        echo(s, data)


def test_each_mirror_is_reached_at_its_address(mirrors):
    """The kernel's TCP through the switch; frames for one board do not go to another."""
    data = bytes(range(256)) * 40
    for k, board in enumerate(mirrors.topology.boards):
        before = mirrors.stats()["ports"]
        meet(mirrors, board, 5000 + k, data)
        after = mirrors.stats()["ports"]
        for other in mirrors.topology.boards:
            grown = after[other.name]["out"] - before[other.name]["out"]
            # At least the data, in segments; at most some broadcasts, more the longer it takes.
            assert grown >= 7 if other == board else grown <= 6, (board.name, other.name, grown)
    assert after["board2"]["up"]["lost"] + after["board2"]["down"]["lost"] > 0
    assert after["board0"]["up"]["lost"] == after["board0"]["down"]["lost"] == 0


def test_the_end_is_clean(root):
    """The simulator ends with its owner, and says why it could not start."""
    topology = parse({"boards": [{}]})
    binary = build_fleet(source("mirror"))
    with Fleet(topology, binary, [root]) as fleet:
        assert fleet.alive()
    assert fleet.close() == 0
    with pytest.raises(TrebuchetError, match="did not start: cannot go to '/nowhere'"):
        Fleet(topology, binary, ["/nowhere"])


@pytest.fixture(scope="module")
def fleet():
    """Four boards, the last one at the end of a bad link; the first three do each other's jobs."""
    from trebuchet.sim.tops import board_source
    from trebuchet.soc.build import build_sim

    names = ["board0", "board1", "board2", "board3"]
    pairs = [{"from": a, "to": b, "timeout": 300} for a in names for b in names if a != b]
    boards = [{}, {}, {"ip": "192.0.2.99"}, {"link": BAD_LINK}]
    topology = parse({"boards": boards, "ltl": pairs})
    made, files = board_source(peers=PEERS), build_sim(peers=PEERS)
    folders = [board_folder(files, topology, board) for board in topology.boards]
    with Fleet(topology, build_fleet(made), folders) as fleet:
        fleet.wait_ready(400)
        yield fleet


def ask(fleet, *command):
    done = fleet.run([*COMMAND, *command], timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def status(fleet, board):
    """The status page; a simulated CPU among four takes its time."""
    return ask(fleet, "status", board.ip, "--json", "--timeout", "200")


def connect(fleet, board):
    """To the echo service; the kernel asks three times for a board's address, and then gives up."""
    end = fleet.deadline(120)
    while True:
        s = fleet.socket()
        s.settimeout(120)
        try:
            s.connect((board.ip, 7))
            return s
        except OSError:
            s.close()
            if not end.left():
                raise


@pytest.mark.nightly
def test_boards_do_each_others_jobs(fleet):
    """One client at one board; the answers are the golden model's, whoever gave them."""
    first, *others = fleet.topology.boards
    command = ["ecg", "run", first.ip, "--record", "synthetic", "--minutes", "1.5", "--json"]
    options = ["--independent", "--outstanding", "2", "--timeout", "200"]
    report = ask(fleet, *command, *options)
    assert report["differing_messages"] == 0
    state = status(fleet, first)
    engines = state["engines"]
    shares = [engines["ecg"]["jobs"], *(engines[f"peer{p}"]["jobs"] for p in (1, 2, 3))]
    assert sum(shares) == report["messages"]
    assert min(shares) > 0, shares
    assert [engines[f"peer{p}"]["errors"] for p in (1, 2, 3)] == [0, 0, 0]
    for share, board in zip(shares[1:], others, strict=True):
        there = status(fleet, board)["engines"]
        assert there["cluster"]["calls"] == there["ecg"]["jobs"] == share, board.name
        assert there["cluster"]["dropped"] == there["cluster"]["refused"] == 0


def joined(fleet):
    """How often each board has said on its console that a peer joined."""
    return [
        fleet.uart_path(board.name).read_text().count(") joined") for board in fleet.topology.boards
    ]


@pytest.mark.nightly
def test_a_board_that_restarts_is_taken_back(fleet):
    """Alone: its peers greet it anew, and it does their jobs again (docs/network.md, Greeting)."""
    first, second, *_ = fleet.topology.boards
    before = joined(fleet)
    assert min(before) >= 3
    command = [*COMMAND, "manage", second.ip, "reset", "--timeout", "200"]
    assert fleet.run(command, timeout=300).returncode == 0
    wanted = [before[0] + 1, before[1] + 3, before[2] + 1, before[3] + 1]

    def all_joined():
        return all(now >= then for now, then in zip(joined(fleet), wanted, strict=True))

    wait_until(all_joined, 400, f"{joined(fleet)} peers have joined, not {wanted}", pause=0.5)
    assert ") is new" in fleet.uart_path(first.name).read_text()
    jobs = status(fleet, first)["engines"]["peer1"]["jobs"]
    options = ["--minutes", "1", "--json", "--independent", "--outstanding", "2"]
    command = ["ecg", "run", first.ip, "--record", "synthetic", *options, "--timeout", "200"]
    assert ask(fleet, *command)["differing_messages"] == 0
    engines = status(fleet, first)["engines"]
    assert engines["peer1"]["jobs"] > jobs
    assert [engines[f"peer{p}"]["errors"] for p in (1, 2, 3)] == [0, 0, 0]


@pytest.mark.nightly
def test_every_board_has_its_own_addresses(fleet):
    for board in fleet.topology.boards:
        before = fleet.stats()["ports"][board.name]["in"]
        with connect(fleet, board) as s:
            echo(s, b"are you there?")
        assert fleet.stats()["ports"][board.name]["in"] >= before + 2, "another board answered"
        console = fleet.uart_path(board.name).read_text()
        assert f"mac {board.mac}, ip {board.ip}" in console
        assert "ltl: 3 peers" in console
    found = ask(fleet, "discover", "--json", "--wait", "20")
    boards = [(board["address"], board["mac"]) for board in found]
    assert boards == [(board.ip, board.mac) for board in fleet.topology.boards]


@pytest.mark.nightly
def test_frames_reach_only_the_board_that_they_are_for(fleet):
    """The switch has learned where each board is: the others see nothing of an exchange."""
    first, second = fleet.topology.boards[:2]
    with connect(fleet, first) as s:
        echo(s, b"once")
        before = fleet.stats()["ports"]
        echo(s, bytes(4000))
        after = fleet.stats()["ports"]

    def grown(name):
        return after[name]["out"] - before[name]["out"]

    assert grown(first.name) >= 3
    assert grown(second.name) <= 1  # an ARP request at most


@pytest.mark.nightly
def test_boards_echo_at_the_same_time(fleet):
    """TCP to all of them at once, each byte back; the last one's link is a bad one."""
    sockets, data = [connect(fleet, board) for board in fleet.topology.boards], bytes(2048)
    for s in sockets:
        s.sendall(data)
    for s in sockets:
        take(s, data)
        s.close()
    assert fleet.stats()["ports"]["board3"]["down"]["frames"] >= 1


def test_only_boards_make_a_fleet():
    with pytest.raises(TrebuchetError, match="need a top of kind board or fabric, not wire"):
        fleet_source(source("wire"))


def test_addresses_are_found_once_in_the_header():
    text = "#define A 1\n#define TREBUCHET_IP 2\n"
    assert _replace(text, "TREBUCHET_IP", 9) == "#define A 1\n#define TREBUCHET_IP 9\n"
    with pytest.raises(TrebuchetError, match="must define B once, not 0 times"):
        _replace(text, "B", 9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fabric", "--boards", "2"], "several boards must be of top board, not 'fabric'"),
        (["--boards", "2", "--loss", "3%"], "--loss is for one board; links of several are"),
        (["--boards", "2", "--trace-from", "9"], "--trace-from is for one board; leave it out"),
        (["mirror", "--trace-from", "9"], "--trace-from is the first cycle of --trace; give that"),
        (["--boards", "2", "--max-rate", "9"], "--max-rate is for one board; leave it out with"),
        (["--topology", "none.yaml"], "cannot read the topology none.yaml"),
        (["--boards", "2", "--time", "soc"], "several boards share their time: wall or cycles:N"),
    ],
)
def test_wrong_use(arguments, message):
    done = subprocess.run(
        [*COMMAND, "sim", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split())
    assert done.stderr.count("\n") == 1
