"""Boards that LTL joins find each other, whatever is lost and whoever restarts."""

import pytest
from peers_bench import Board, builder
from streams import make_rng, seeds
from trebuchet.sim.fleet.firmware import peers_text
from trebuchet.sim.fleet.topology import parse, uniform


@pytest.fixture
def build(root, tmp_path):
    return builder(root, tmp_path)


class World:
    """Boards of a topology, and a network between them that loses, doubles and delays frames.

    A narrow one's boards keep one frame a step, of the next board around a ring that sends one:
    slow boards that take turns as in step, with room for one frame each.
    """

    def __init__(self, build, topology, seed=0, loss=0.0, late=0, narrow=False):
        self.build, self.topology, self.rng = build, topology, make_rng(seed, "world")
        self.narrow = narrow
        self.loss, self.late, self.now, self.frames, self.starts = loss, late, 0, [], 0
        self.boards = {}
        for spec in topology.boards:
            self.start(spec)

    def start(self, spec):
        """Switch a board on, or restart it: nothing of its past is left but what others keep."""
        library = self.build(peers_text(self.topology, spec))
        library.set_time(self.now)
        self.starts += 1
        board = Board(library, 0, spec.mac_int, spec.ip_int).start(self.rng.randrange(1 << 16))
        board.born = self.starts
        self.boards[spec.ip_int] = board

    def step(self, milliseconds=10):
        self.now += milliseconds
        for board in self.boards.values():
            board.serve(self.now)
            for frame in board.sent:
                for _ in range(self.rng.choice((1, 2)) if self.loss else 1):
                    if self.rng.random() >= self.loss:
                        due = self.now + self.rng.randint(0, self.late)
                        self.frames.append((due, frame))
            board.sent.clear()
        due = [frame for at, frame in self.frames if at <= self.now]
        self.frames = [(at, frame) for at, frame in self.frames if at > self.now]
        self.rng.shuffle(due)
        for number, board in enumerate(self.boards.values()):
            # A switch that knows nobody sends each frame to everyone.
            for frame in self.nearest(due, number) if self.narrow else due:
                board.take(frame)
        for board in self.boards.values():
            assert board.errors == []

    def nearest(self, frames, number):
        """The frame for a board that the nearest one behind it sent, if there is one."""
        macs = [board.mac.to_bytes(6, "big") for board in self.boards.values()]
        behind = macs[number:] + macs[:number]
        mine = [frame for frame in frames if frame[:6] == macs[number]]
        return sorted(mine, key=lambda frame: behind.index(frame[6:12]))[:1]

    def faults(self):
        """Send entries whose other end is not open, or not theirs, as ``(board, entry)``.

        With each, frames would have been sent before the other end was opened for the last time,
        or not all since: LTL finds out, by time-outs. A pair of entries fits if the incarnation is
        the same, and each opening of the one has met one of the other.
        """
        found = []
        for board in self.boards.values():
            for (receive, entry), fields in board.tables.items():
                if receive:
                    continue
                other = self.boards[fields["ltl.peer_ip"]]
                back = other.tables.get((1, fields["ltl.peer_connection"]))
                met = (board.born, entry, fields["opened"])
                fits = back is not None and back["ltl.incarnation"] == fields["ltl.incarnation"]
                if not fits or back.setdefault("met", met) != met:
                    found.append((board, entry))
        return found

    def is_whole(self):
        pairs = {tuple(sorted((c.source, c.target))) for c in self.topology.connections}
        opened = sum(len(board.tables) for board in self.boards.values())
        return opened == 2 * 4 * len(pairs) and self.faults() == []


MESH = uniform(4)
TREE = parse(
    {
        "boards": [{"name": name} for name in "abcd"],
        "ltl": [{"from": a, "to": b} for a, b in ("ca", "ab", "dc")],
    }
)


TOPOLOGIES = pytest.mark.parametrize(
    "topology",
    [
        pytest.param(TREE, id="tree"),
        pytest.param(MESH, id="mesh", marks=pytest.mark.nightly),
    ],
)


@TOPOLOGIES
@seeds(2)
def test_a_board_that_restarts_is_taken_back(build, topology, seed):
    """On a good network within a second, one after the other and two at once."""
    world = World(build, topology, seed)
    for restarted in ((), (0,), (2,), (1, 3), (0, 1, 2, 3)):
        for k in restarted:
            world.start(topology.boards[k])
        for _ in range(100):
            world.step()
            # Nothing is sent to an end that is not open, not even for a moment.
            bad = [(board, entry) for board, entry in world.faults() if not restarted]
            assert bad == []
        assert world.is_whole(), restarted
        for spec in topology.boards:
            called = sum(
                1 << n for n, p in enumerate(topology.peers(spec.name), start=1) if p.called
            )
            assert world.boards[spec.ip_int].values["cluster.enable"] == 1 | called


@seeds(6)
def test_all_join_again_whatever_the_network_does(build, seed):
    """Half of the greetings are lost, doubled or seconds late; boards restart; LTL fails at will.

    What greetings alone do not mend, LTL reports, as here from time to time.
    """
    world = World(build, TREE, seed, loss=0.5, late=3000)
    for _ in range(60):
        world.rng.choice((lambda: world.start(world.rng.choice(TREE.boards)), lambda: None))()
        for board in world.boards.values():
            sending = [entry for receive, entry in board.tables if not receive]
            if sending and world.rng.random() < 0.2:
                board.failures.append(world.rng.choice(sending))
        for _ in range(world.rng.randrange(100)):
            world.step()
    world.loss, world.late = 0.0, 0
    for _ in range(20):
        for _ in range(100):
            world.step()
        for board, entry in world.faults():
            board.tables.pop((0, entry))
            board.failures.append(entry)
    assert world.is_whole()


@seeds(4)
def test_slow_boards_join(build, seed):
    """Half a second for each pass of the firmware, as in simulation.

    While all went on asking in each pass, each board heard the same other one for ever.
    """
    world = World(build, MESH, seed, narrow=True)
    passes = 0
    while not world.is_whole():
        world.step(500)
        passes += 1
        assert passes < 120


@TOPOLOGIES
def test_the_entries_of_all_boards_fit_together(build, topology):
    """Each open entry names, at the other end, one that names it; requests and replies apart."""
    world = World(build, topology)
    for _ in range(50):
        world.step()
    boards = world.boards
    joined = {tuple(sorted((c.source, c.target))) for c in topology.connections}
    assert sum(len(board.tables) for board in boards.values()) == 2 * 4 * len(joined)
    for spec in topology.boards:
        for (receive, entry), fields in boards[spec.ip_int].tables.items():
            other = fields["ltl.peer_ip"]
            back = boards[other].tables[1 - receive, fields["ltl.peer_connection"]]
            assert (back["ltl.peer_ip"], back["ltl.peer_connection"]) == (spec.ip_int, entry)
            assert back["ltl.peer_mac"] == int.from_bytes(bytes.fromhex("02000000"), "little")
            assert back["ltl.peer_mac_high"] == int(spec.mac[-2:], 16) << 8
            for name in ("incarnation", "vc", "peer_port", "rto"):
                assert back[f"ltl.{name}"] == fields[f"ltl.{name}"], name
            assert fields["ltl.credit"] == (4 if receive else 0), "who sends asks"
            assert fields["ltl.vc"] == entry % 2 == fields["ltl.peer_connection"] % 2


def test_jobs_may_go_where_the_topology_says(build):
    ltl = [{"from": a, "to": b} for a, b in ("ca", "ab", "dc", "ac")]
    topology = parse({"boards": [{"name": name} for name in "abcd"], "ltl": ltl})
    world = World(build, topology)
    for _ in range(50):
        world.step()
    masks = [board.values["cluster.enable"] for board in world.boards.values()]
    # Peers of a: b, c; of b: a; of c: a, d; of d: c.
    assert masks == [0b111, 0b001, 0b011, 0b011]
