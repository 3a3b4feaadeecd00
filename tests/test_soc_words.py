"""Memory written in whole words only: Migen's simulator, against a LiteDRAM port as rude as one."""

import random

import pytest
from litedram.common import LiteDRAMNativePort
from migen import Module, passive, run_simulation
from trebuchet.soc.words import WholeWords

WIDTH, LOG2 = 64, 4
BYTES = WIDTH // 8


class _Top(Module):
    def __init__(self):
        self.native = LiteDRAMNativePort("both", LOG2, WIDTH)
        self.submodules.dut = WholeWords(self.native)


@passive
def _memory(native, words, rng, seen):
    """LiteDRAM: takes and shows words in cycles that it chooses, without regard to valid or ready.

    A command is done when its word moves, in order.
    """
    pending, now, last = [], 0, 0
    while True:
        ready = len(pending) < 6 and rng.random() < 0.7
        move = pending.pop(0) if pending and pending[0][0] <= now else None
        yield native.cmd.ready.eq(ready)
        yield native.wdata.ready.eq(bool(move and move[1]))
        yield native.rdata.valid.eq(bool(move and not move[1]))
        if move and not move[1]:
            yield native.rdata.data.eq(words[move[2]])
        yield
        if move and move[1]:
            assert (yield native.wdata.valid), "no word in the cycle in which LiteDRAM takes it"
            assert (yield native.wdata.we) == (1 << BYTES) - 1, "a write of a part of a word"
            words[move[2]] = yield native.wdata.data
        if ready and (yield native.cmd.valid):
            last = max(last + 1, now + rng.randint(2, 20))
            pending.append((last, (yield native.cmd.we), (yield native.cmd.addr)))
            seen.append(pending[-1][1])
        now += 1


def _until(signal):
    while not (yield signal):
        yield


def _write(port, addr, data, mask, late):
    """A write, with its word ``late`` cycles after its command."""
    yield port.cmd.we.eq(1)
    yield port.cmd.addr.eq(addr)
    yield port.cmd.valid.eq(1)
    yield port.wdata.data.eq(data)
    yield port.wdata.we.eq(mask)
    yield port.wdata.valid.eq(late == 0)
    yield
    # In one cycle both may be taken only one after the other.
    yield from _until(port.cmd.ready)
    yield port.cmd.valid.eq(0)
    for _ in range(late):
        yield
    yield port.wdata.valid.eq(1)
    yield
    yield from _until(port.wdata.ready)
    yield port.wdata.valid.eq(0)


def _read(port, addr):
    yield port.cmd.we.eq(0)
    yield port.cmd.addr.eq(addr)
    yield port.cmd.valid.eq(1)
    yield
    yield from _until(port.cmd.ready)
    yield port.cmd.valid.eq(0)
    yield
    yield from _until(port.rdata.valid)
    return (yield port.rdata.data)


def _user(port, half, seed, whole, done):
    """Reads and writes of every second byte, which are this user's alone; reads are checked."""
    rng = random.Random(seed)
    mine = [int(i % 2 == half) for i in range(BYTES)]
    expected = {}
    for _ in range(60):
        addr = rng.randrange(1 << LOG2)
        if rng.random() < 0.6:
            full = whole and rng.random() < 0.5
            mask = [1] * BYTES if full else [rng.getrandbits(1) & m for m in mine]
            data = rng.getrandbits(WIDTH)
            bits = sum(bit << i for i, bit in enumerate(mask))
            yield from _write(port, addr, data, bits, rng.randrange(3))
            for i, bit in enumerate(mask):
                if bit:
                    expected[addr, i] = data >> 8 * i & 0xFF
        else:
            word = yield from _read(port, addr)
            for i in range(BYTES):
                if (addr, i) in expected:
                    assert word >> 8 * i & 0xFF == expected[addr, i], (seed, addr, i)
        for _ in range(rng.choice((0, 0, 5))):
            yield
    done.append((half, expected))


@pytest.mark.parametrize("seed", range(4))
def test_two_users_share_words_and_lose_no_byte(seed):
    top, done, seen = _Top(), [], []
    words = [random.Random(i).getrandbits(WIDTH) for i in range(1 << LOG2)]

    def both():
        limit = 20_000
        while len(done) < 2:
            yield
            limit -= 1
            assert limit, "a user waits for ever"
        for _ in range(60):  # words on their way
            yield

    run_simulation(
        top,
        [
            _memory(top.native, words, random.Random(seed), seen),
            both(),
            *(_user(top.dut.ports[k], k, 10 * seed + k, False, done) for k in range(2)),
        ],
    )
    for _, expected in done:
        for (addr, i), byte in expected.items():
            assert words[addr] >> 8 * i & 0xFF == byte


def test_whole_words_are_not_read_first():
    top, seen = _Top(), []
    words = [0] * (1 << LOG2)

    def user():
        for addr in range(8):
            yield from _write(top.dut.ports[0], addr, addr + 1, (1 << BYTES) - 1, 0)
        for _ in range(60):
            yield

    run_simulation(top, [_memory(top.native, words, random.Random(1), seen), user()])
    assert seen == [1] * 8
    assert words[:8] == list(range(1, 9))


def test_one_user_with_whole_and_partial_words():
    top, done, seen = _Top(), [], []
    words = [0] * (1 << LOG2)
    user = _user(top.dut.ports[1], 1, 5, True, done)
    run_simulation(top, [_memory(top.native, words, random.Random(2), seen), user])
    assert done
    assert 0 in seen
