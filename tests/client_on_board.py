"""What a program does with a simulated board through the client library: ADDRESS as argument.

The board has the roles ecg, matmul and loopback. Prints `right` if all is as the golden models say.
"""

import asyncio
import random
import sys

import numpy as np
from trebuchet.client import AsyncBoard, BadLength, Board, Pool
from trebuchet.host.ecg.client import read_with_model
from trebuchet.models import matmul
from trebuchet.models.ecg import data

SEED = 91
#: Nobody waits so long; what counts is simulated time.
TIMEOUT = 60


def use_roles(board, rng):
    assert board.roles == ["ecg", "matmul", "loopback"]
    record = data.load("synthetic", 0.25)
    expected = read_with_model(record)
    for streamed in (None, False):
        found = board.ecg.run(record.samples, streamed=streamed)
        assert (found.positions == expected.positions).all()
    a, b = (np.frombuffer(rng.randbytes(2 * 4 * 64 * 64), "<i4").reshape(2, 64, 64) for _ in "ab")
    products = board.matmul(a, b)
    assert all((products[k] == matmul.multiply(a[k], b[k])).all() for k in range(2))
    pieces = [rng.randbytes(rng.randint(0, 1500)) for _ in range(30)]
    assert list(board.role("loopback").stream(pieces)) == pieces
    try:
        board.role("matmul").call(b"x")
    except BadLength:
        pass
    else:
        raise AssertionError("one byte is no pair of matrices")


def use_management(board):
    counters = board.counters()
    assert counters["loopback.jobs"] >= 30
    assert board.status()["sessions"] >= 1
    assert board.command("version")
    assert board.events()
    assert any(session["port"] == 4000 for session in board.sessions())


def use_registers(board):
    before = board.registers.tcp.rto_min
    board.registers.tcp.rto_min = before + 1
    assert board.read_registers("tcp.rto*")["tcp.rto_min"] == before + 1
    board.registers.tcp.rto_min = before
    counters = board.counters()
    values = board.read_registers("*")
    assert values.keys() >= counters.keys()
    assert values["loopback.jobs"] == counters["loopback.jobs"]
    grow = ("tcp_rx.segments", "tcp_tx.frames", "smp.messages")
    assert all(values[name] >= counters[name] for name in grow)


async def use_asyncio(address, rng):
    pieces = [rng.randbytes(100) for _ in range(20)]
    async with AsyncBoard(address, timeout=TIMEOUT) as board:
        calls = [board.role("loopback").call(piece) for piece in pieces]
        assert await asyncio.gather(*calls) == pieces
        assert [each async for each in board.role("loopback").stream(pieces)] == pieces


def main(address):
    rng = random.Random(SEED)
    with Board(address, timeout=TIMEOUT) as board:
        use_roles(board, rng)
        use_management(board)
        use_registers(board)
    asyncio.run(use_asyncio(address, rng))
    pieces = [rng.randbytes(300) for _ in range(40)]
    with Pool([address, address], timeout=TIMEOUT) as pool:  # two connections, as two boards
        found = list(pool.map(pool.role("loopback").call, pieces, ordered=False))
    assert sorted(found) == sorted(pieces)
    print("right")


if __name__ == "__main__":
    main(sys.argv[1])
