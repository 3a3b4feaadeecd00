"""Epochs in SMP messages: what the framer's guard refuses, against the naive framing model."""

import struct

import pytest
from service_model import Connection
from streams import make_rng, seeds
from test_services_framer import SEGMENT, work
from test_services_framer import Bench as FramerBench
from test_services_smp_board import KINDS, LARGEST, TYPES, configuration, judge
from test_services_smp_board import Bench as BoardBench
from trebuchet.models.epoch import EPOCH_BITS, check_epoch, is_newer, next_epoch
from trebuchet.models.smp_framing import (
    MESSAGE_HEADER,
    TYPE_CONFIGURATION,
    TYPE_DATA,
    data_message,
    error_message,
    frame,
)
from trebuchet.models.status import Status

#: Epochs that differ in one bit, in a byte, or are none.
EPOCHS = (0, 1, 2, 0x0101, 0x0100, 0x8001, 0xFFFF)


def stamped(message, epoch):
    return message[:2] + struct.pack("<H", epoch) + message[4:]


def messages(rng, count, epochs, firmware):
    """Messages of all types, many of ``epochs``; some are refused for other reasons."""
    out = b""
    for _ in range(count):
        ident = rng.getrandbits(32)
        data = rng.randbytes(rng.choice([0, 4, SEGMENT - MESSAGE_HEADER, rng.randint(0, 60)]))
        kind = rng.random()
        if kind < 0.1:
            message = struct.pack("<B3xI", TYPE_DATA, rng.choice([SEGMENT - 7, 1 << 31])) + data
        elif kind < 0.2:
            message = struct.pack("<B3xI", TYPE_DATA, 3) + b"abc"
        elif kind < 0.22:
            message = struct.pack("<B3xI", 2, 4) + b"abcd"
        elif kind < 0.5 and firmware:
            size = rng.choice([0, 3, 16, SEGMENT - 8, SEGMENT, rng.randint(0, LARGEST)])
            message = configuration(rng.randbytes(size))
        elif kind < 0.6:
            message = data_message(ident, data, TYPE_CONFIGURATION, role=0)
        else:
            message = data_message(ident, data, rng.choice(TYPES if not firmware else TYPES[:2]))
        out += stamped(message, rng.choice((*epochs, *EPOCHS)))
    return out[: rng.randrange(len(out) + 1)] if rng.random() < 0.2 else out


def make(firmware, seed):
    """A bench, its framer's registers, and the naive firmware."""
    if firmware:
        bench = BoardBench(seed)
        return bench, bench.dut.framer.csr, judge
    bench = FramerBench(seed, kinds=KINDS)
    return bench, bench.dut.csr, None


def write(csr, lease, guard):
    async def process(ctx):
        ctx.set(csr.lease, lease)
        ctx.set(csr.guard, guard)

    return process


def stale_answers(received):
    """Number of STALE responses among a connection's answers."""
    at = count = 0
    while at < len(received):
        kind, size = struct.unpack_from("<B3xI", received, at)
        count += kind == 2 and received[at + 8] == Status.STALE
        at += 8 + size
    return count


@pytest.mark.parametrize("firmware", [False, True])
@pytest.mark.parametrize("guard", [0, 1])
@seeds(2)
def test_a_guard_admits_its_epoch_alone(firmware, guard, seed):
    """Every type, size and error; nothing of another epoch is seen by role or firmware."""
    bench, csr, board = make(firmware, seed)
    rng = bench.rng
    lease = rng.choice(EPOCHS)
    conns = [
        Connection(
            messages(rng, rng.randint(0, 4), 3 * (lease,), firmware), chunk=rng.choice([11, 200])
        )
        for _ in range(8)
    ]
    counted = []

    async def collect(ctx):
        ctx.set(csr.lease, lease)
        ctx.set(csr.guard, guard)
        while not all(conn.released for conn in conns):
            await ctx.tick()
        counted.append(ctx.get(csr.stale))

    bench.run(conns, collect)
    jobs = []
    for conn in conns:
        judged = (lambda _: lease) if guard else None
        want, given, _ = frame(conn.payload, SEGMENT, work, TYPES, board, judged)
        assert conn.received == want
        jobs += given
    assert sorted(bench.role.seen) == sorted(jobs)
    stale = sum(stale_answers(conn.received) for conn in conns)
    assert counted == [stale]
    assert guard or not stale


@pytest.mark.parametrize("firmware", [False, True])
@seeds(2)
def test_an_epoch_rises_between_messages(firmware, seed):
    """Of each connection a first part is judged by the old registers, the rest by the new ones."""
    bench, csr, board = make(firmware, seed)
    rng = bench.rng
    old, new, on = rng.choice([(5, 6, 1), (0, 7, 1), (9, 10, 0)])
    conns = [
        Connection(messages(rng, 6, 2 * (old, new), firmware), chunk=rng.choice([11, 200]))
        for _ in range(4)
    ]
    write_at = rng.randint(0, 3000)

    async def raises(ctx):
        ctx.set(csr.lease, old)
        ctx.set(csr.guard, on)
        for _ in range(write_at):
            await ctx.tick()
        ctx.set(csr.lease, new)
        ctx.set(csr.guard, 1)

    bench.run(conns, raises)

    def judged_as(switch):
        return lambda n: new if n >= switch else old if on else None

    for conn in conns:
        wants = [
            frame(conn.payload, SEGMENT, work, TYPES, board, judged_as(k))[0] for k in range(8)
        ]
        assert conn.received in wants


def test_what_a_stale_message_is_answered():
    """Its ID, and the connection goes on; but a message that does not fit is its last."""
    bench, csr, _ = make(True, 1)
    good, large = stamped(configuration(bytes(3)), 17), bytes(SEGMENT)
    cases = (
        (data_message(9, b"abc", epoch=16), error_message(Status.STALE, 9)),
        (data_message(9, b"abc", TYPE_CONFIGURATION, 0, 16), error_message(Status.STALE, 9)),
        (stamped(configuration(bytes(9)), 18), error_message(Status.STALE)),
        (stamped(configuration(b""), 18), error_message(Status.BAD_LENGTH)),
    )
    conns = [Connection(message + good) for message, _ in cases]
    for message in (data_message(9, large), stamped(configuration(large), 18)):
        conns.append(Connection(message + good))
    bench.run(conns, write(csr, 17, 1))
    for conn, (_, answer) in zip(conns, cases, strict=False):
        assert conn.received == answer + error_message(Status.OK)
    for conn in conns[len(cases) :]:
        assert conn.received == error_message(Status.STALE)
    assert bench.role.seen == []
    assert bench.cpu.done == len(cases) * [bytes(3)]


def test_epochs_are_serial_numbers():
    """RFC 1982, 3.2, in 16 bits; 0 is none."""
    half, rng = 1 << EPOCH_BITS - 1, make_rng(1, "epochs")
    assert is_newer(2, 1)
    assert is_newer(1, (1 << EPOCH_BITS) - 1)
    assert is_newer(half, 1)
    assert not is_newer(half + 1, 1)
    assert not is_newer(1, half + 1)
    assert not is_newer(0, 0)
    assert next_epoch(0) == 1
    assert next_epoch((1 << EPOCH_BITS) - 1) == 1
    for _ in range(200):
        a, b = rng.randrange(1, 1 << EPOCH_BITS), rng.randrange(1, 1 << EPOCH_BITS)
        assert not (is_newer(a, b) and is_newer(b, a))
        assert is_newer(next_epoch(a), a)
        assert is_newer(a, 0)
        assert not is_newer(0, a)
        assert check_epoch(a) == a
    for wrong in (0, -1, 1 << EPOCH_BITS, 1.5, None):
        with pytest.raises(ValueError, match="An epoch must be 1 to 65535, not"):
            check_epoch(wrong)
    with pytest.raises(ValueError, match="Epoch must be 0 to 65535, not 65536"):
        data_message(1, b"", epoch=1 << EPOCH_BITS)
