"""The firmware's set-up of LTL on one board, compiled for this machine."""

from itertools import pairwise

import pytest
from peers_bench import (
    CLOSE,
    OPEN_RECEIVE,
    OPEN_SEND,
    THREE,
    Board,
    builder,
    commands,
    greeting,
    printed,
    told,
)
from trebuchet.soc.peers import Peer, peers_header


@pytest.fixture
def build(root, tmp_path):
    return builder(root, tmp_path)


@pytest.mark.parametrize("seed", range(5))
def test_every_write_in_order(build, capfd, seed):
    """The start, a peer that joins, and one that is new after that."""
    board = Board(build(peers_header(THREE, clock_mhz=54.2, dscp=24)), seed).start(0xFFFF)
    assert board.writes == [
        ("ltl.tick_cycles", 55),
        ("ltl.dscp", 24),
        ("ltl.enable", 1),
        ("cluster.enable", 1),
    ]
    assert board.wakes == [10]
    assert board.library.does_listen()
    assert printed(capfd) == "ltl: 3 peers\n"
    assert board.serve() == []
    assert [told(frame) for frame in board.sent] == [(p.ip, 0xFFFF, 0, 1) for p in THREE]
    peer = THREE[0]
    # It does not know our number: what receives is opened, nothing is sent yet.
    assert board.hear(peer, 7, 0, asks=True) == [
        ("cluster.enable", 1),
        ("peer1.reset", 1),
        *commands(1, peer, 6, CLOSE, OPEN_RECEIVE),
    ]
    board.serve(1)
    assert told(board.sent[-1]) == (peer.ip, 0xFFFF, 7, 1)
    assert board.hear(peer, 7, 0xFFFF) == [
        *commands(1, peer, 6, OPEN_SEND),
        ("cluster.enable", 0b11),
    ]
    assert printed(capfd) == "ltl: peer 1 (10.0.0.3) joined\n"
    assert board.looks >= 6, "each command must be waited for"
    # It has restarted: we take another number, too.
    assert board.hear(peer, 9, 0, asks=True) == [
        ("cluster.enable", 1),
        ("peer1.reset", 1),
        *commands(1, peer, 10, CLOSE, OPEN_RECEIVE),
    ]
    assert printed(capfd) == "ltl: peer 1 (10.0.0.3) is new\n"
    board.serve(2)
    assert told(board.sent[-1]) == (peer.ip, 1, 9, 1)
    assert board.errors == []


def test_greetings_of_others_change_nothing(build):
    board = Board(build(peers_header(THREE, clock_mhz=1))).start()
    peer = THREE[0]
    stranger = Peer(mac=0x0200_0000_0077, ip=peer.ip, theirs=1, timeout_us=1, called=True)
    good = greeting(peer, board, 7, 0)
    bad = [
        greeting(stranger, board, 7, 0),
        greeting(peer, board, 7, 0, ip=peer.ip + 1),
        greeting(peer, board, 7, 0, to=board.ip + 1),
        greeting(peer, board, 7, 0, sport=67),
        greeting(peer, board, 7, 0, dport=69),
        greeting(peer, board, 0, 0),
        b"\x02" + bytes(4) + b"\x09" + good[6:],
        good[:-1],
        good[:-9] + b"LTL\x02" + good[-5:],
        *(good[:n] for n in range(0, 50, 7)),
        *(good[:n] + bytes([good[n] ^ 1]) + good[n + 1 :] for n in range(14, len(good))),
    ]
    board.writes.clear()
    for frame in bad:
        board.take(frame)
    assert board.writes == []
    board.take(good)
    assert board.writes != []


def times(board, until):
    """When a board that is served every 10 ms sends its greetings, in ms."""
    found = []
    for now in range(0, until, 10):
        board.serve(now)
        found += [now] * (len(board.sent) - len(found))
    return found


def test_greetings_are_repeated_until_they_are_answered(build):
    """After pauses that grow, and begin small again when there is news."""
    board = Board(build(peers_header(THREE[:1], clock_mhz=1))).start()
    board.library.set_busy(True)
    board.serve(0)
    assert board.sent == [], "the frame port is busy"
    board.library.set_busy(False)
    at = times(board, 60_000)
    pauses = [b - a for a, b in pairwise(at)]
    assert at[0] == 0
    assert 200 <= pauses[0] <= 410
    for before, after in pairwise(pauses):
        assert min(before, 3200) - 10 <= after <= min(2 * before, 6400) + 10
    assert pauses[-1] >= 3200
    sent = len(at)
    board.hear(THREE[0], 7, 0x9999)
    for now in range(60_000, 60_500, 10):
        board.serve(now)
    assert len(board.sent) >= sent + 2, "the peer is there: it is asked soon again"
    board.hear(THREE[0], 7, 0x1234, asks=True)
    board.serve(61_000)
    assert told(board.sent[-1]) == (THREE[0].ip, 0x1234, 7, 0)
    sent = len(board.sent)
    for now in range(61_010, 80_000, 10):
        board.serve(now)
    assert len(board.sent) == sent, "both have joined"


def test_boards_that_start_together_do_not_ask_together(build):
    header = peers_header(THREE[:1], clock_mhz=1)
    first, second = (times(Board(build(header)).start(chance), 60_000) for chance in (5, 6))
    assert len(set(first) & set(second)) <= 3


def test_a_board_without_peers(build, capfd):
    board = Board(build(peers_header((), clock_mhz=1))).start()
    assert board.writes == [
        ("ltl.tick_cycles", 1),
        ("ltl.dscp", 0),
        ("ltl.enable", 1),
        ("cluster.enable", 1),
    ]
    assert board.wakes == []
    assert printed(capfd) == "ltl: 0 peers\n"


def test_peers_of_the_configuration(build, capfd):
    """They take the place of those that the firmware was built for, and add to them."""
    fourth = Peer(mac=0x0200_0000_00FF, ip=0x0A00_0063, theirs=2, timeout_us=300, called=True)
    second = Peer(mac=0x0200_0000_00EE, ip=0x0A00_0062, theirs=1, timeout_us=77, called=True)
    library = build(peers_header(THREE, clock_mhz=54.2, dscp=24))
    library.configure(
        b"peer14=02:00:00:00:00:ff,10.0.0.99,2,300,1\n"
        b"peer2=02:00:00:00:00:ee,10.0.0.98,1,77,1\n"
        b"peer1=02:00:00:00:00:ee,10.0.0.98,0,77,1\n"  # not allowed, so not used
        b"peer16=02:00:00:00:00:ee,10.0.0.98,1,77,1\n"
    )
    board = Board(library).start()
    table = {1: THREE[0], 2: second, 3: THREE[2], 14: fourth}
    assert board.writes == [
        ("ltl.tick_cycles", 55),
        ("ltl.dscp", 24),
        ("ltl.enable", 1),
        ("cluster.enable", 1),
    ]
    assert printed(capfd) == f"ltl: {len(table)} peers\n"
    board.serve()
    assert [told(frame)[0] for frame in board.sent] == [peer.ip for peer in table.values()]
    for number, peer in table.items():
        opened = [*board.hear(peer, 7, 0), *board.hear(peer, 7, 0x1234)]
        for write in commands(number, peer, 0x123B, CLOSE, OPEN_RECEIVE, OPEN_SEND):
            assert write in opened
    printed(capfd)
    board.failures = [2 * 2]
    board.serve()
    assert printed(capfd) == "ltl: requests to peer 2 (10.0.0.98) failed\n"


def test_a_shell_without_ltl(build, capfd):
    """There is no accessor, so there can be no access; nothing is said either."""
    library = build("#error not for a shell without LTL\n", regions=[])
    board = Board(library).start()
    board.failures = [2]
    assert board.serve() == []
    assert board.wakes == []
    assert printed(capfd) == ""


def test_a_failed_peer_gets_no_more_jobs(build, capfd):
    board = Board(build(peers_header(THREE, clock_mhz=125))).start()
    for peer in THREE:
        board.hear(peer, 7, 0x1234)
    assert board.values["cluster.enable"] == 0b1011
    printed(capfd)
    assert board.serve() == [], "nothing has failed"
    board.failures = [2 * 3]
    lost = [("cluster.enable", 0b0011), ("peer3.reset", 1), ("ltl.failure_next", 1)]
    assert board.serve() == lost, "no job may come after the reset"
    assert printed(capfd) == "ltl: requests to peer 3 (10.0.0.5) failed\n"
    assert told(board.sent[-1]) == (THREE[2].ip, 0x1235, 0, 1), "greeted anew at once"
    # Two at once, one of them of a board that gets no jobs anyway.
    board.failures = [2 * 2 + 1, 2 * 1]
    assert board.serve() == [
        ("cluster.enable", 0b0011),
        ("peer2.reset", 1),
        ("ltl.failure_next", 1),
        ("cluster.enable", 0b0001),
        ("peer1.reset", 1),
        ("ltl.failure_next", 1),
    ]
    assert printed(capfd) == (
        "ltl: replies to peer 2 (192.168.1.254) failed\nltl: requests to peer 1 (10.0.0.3) failed\n"
    )
    assert board.failures == []
    # It answers: both have changed their numbers.
    assert board.hear(THREE[2], 8, 0x1235)[-1] == ("cluster.enable", 0b1001)
