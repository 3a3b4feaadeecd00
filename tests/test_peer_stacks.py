"""lwIP and smoltcp against our engine, which opens connections or has them opened to it.

In the nightly tier there are longer transfers, too: 8 MB, and 1 MB over the bad
link, where each takes minutes.
"""

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


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize("stack", STACKS)
def test_transfers_with_an_independent_stack(link, stack, role):
    """Byte-exact both ways at once, an orderly end each, and nothing stays in the engine."""
    transfer(link, stack, role, SIZES[link[0]])


@pytest.mark.nightly
@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize("stack", STACKS)
def test_long_transfers_with_an_independent_stack(link, stack, role):
    transfer(link, stack, role, LONG[link[0]])


def transfer(link, stack, role, sizes):
    """Move ``sizes`` bytes both ways over connections that ``role`` serves or opens."""
    kind, board, fresh = link
    before = board.counters()
    port = ECHO if role == "client" else LISTENS
    seconds = SECONDS + max(sizes) // 5_000
    done = board.run(command(stack, board, role, port, sizes), timeout=PATIENCE * seconds)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(sizes)
    now = board.counters()
    opened = now["tcp.established"] - before["tcp.established"]
    assert opened >= len(sizes)
    if role == "server" and kind == "clean":
        assert now["tcp.syn_rx"] == before["tcp.syn_rx"], "the board was to open the connections"
    assert now["tcp_tx.payload_bytes"] - before["tcp_tx.payload_bytes"] >= sum(sizes)
    if kind == "bad":
        assert now["tcp.retransmits"] > before["tcp.retransmits"]
        assert board.stats()["to_board"]["lost"] > 0
    assert_drained(board.counters, fresh)
    assert board.stats()["link_errors"] == 0
