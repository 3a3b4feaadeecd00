"""lwIP and smoltcp against our engine, which opens connections or has them opened to it.

In the nightly tier there are longer transfers, too: 8 MB, and 1 MB over the bad
link, where each takes minutes.
"""

import time

import pytest
from e2e_board import assert_drained
from e2e_clients import ECHO
from patience import PATIENCE
from peer_stacks import STACKS, command, large_fabric
from sim_tops import needs_network
from trebuchet.sim.run import Board

pytestmark = [pytest.mark.slow, needs_network]

#: Ten times as bad as the links that TCP is made for.
BAD = ("--loss", "10%", "--reorder", "5%", "--duplicate", "2%", "--corrupt", "2%", "--seed", "3")
SIZES = {"clean": (1, 2, 1459, 1460, 1461, 65_536, 1_000_000), "bad": (1, 1461, 20_000, 40_000)}
LONG = {"clean": (8_000_000,), "bad": (1_000_000,)}
#: A peer listens here for the board.
LISTENS = 5007
SECONDS = 100


@pytest.fixture(scope="module", params=["clean", "bad"])
def link(request):
    options = BAD if request.param == "bad" else ()
    with Board(large_fabric(), options, uart="none") as board:
        yield request.param, board, board.counters()


@pytest.mark.parametrize(
    ("stack", "role"),
    [
        ("lwip", "client"),
        ("smoltcp", "server"),
        pytest.param("lwip", "server", marks=pytest.mark.nightly),
        pytest.param("smoltcp", "client", marks=pytest.mark.nightly),
    ],
)
def test_transfers_with_an_independent_stack(link, stack, role, tmp_path):
    """Byte-exact both ways at once, an orderly end each, and nothing stays in the engine."""
    transfer(link, stack, role, SIZES[link[0]], tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize("stack", STACKS)
def test_long_transfers_with_an_independent_stack(link, stack, role, tmp_path):
    transfer(link, stack, role, LONG[link[0]], tmp_path)


def transfer(link, stack, role, sizes, folder):
    """Move ``sizes`` bytes both ways over connections that ``role`` serves or opens."""
    board = link[1]
    before = board.counters()
    port = ECHO if role == "client" else LISTENS
    seconds = SECONDS + max(sizes) // 5_000
    with (
        open(folder / "out", "w") as out,
        open(folder / "errors", "w") as errors,
        board.popen(command(stack, board, role, port, sizes), stdout=out, stderr=errors) as peer,
    ):
        try:
            lines = finished(board.deadline(PATIENCE * seconds), peer, folder)
            assert len(lines) == len(sizes)
            check(link, role, sizes, before)
        finally:
            peer.kill()


def finished(end, peer, folder):
    """Wait until the peer says that it is done; returns what it said before."""
    while True:
        code = peer.poll()
        *lines, last = (folder / "out").read_text().splitlines() or [""]
        if last == "done":
            print(*lines, sep="\n")
            return lines
        said = (folder / "errors").read_text()
        assert code is None, f"{said} (after: {lines} {last})"
        time.sleep(min(0.1, end.pause()))


def check(link, role, sizes, before):
    """What the board's counters say of the transfers; the peer is still there to answer."""
    kind, board, fresh = link
    now = board.counters()
    opened = now["tcp.established"] - before["tcp.established"]
    assert opened >= len(sizes)
    if role == "server" and kind == "clean":
        assert now["tcp.syn_rx"] == before["tcp.syn_rx"], "the board was to open the connections"
    assert now["tcp_tx.payload_bytes"] - before["tcp_tx.payload_bytes"] >= sum(sizes)
    if kind == "bad":
        assert now["tcp.retransmits"] > before["tcp.retransmits"]
        assert board.stats()["to_board"]["lost"] > 0
    assert_drained(board.counters, fresh, seconds=100)
    assert board.stats()["link_errors"] == 0
