"""The firmware's node manager (SMP on the CPU's port), compiled for this machine."""

import random
import struct

import pytest
from node_lib import (
    CONFIGURE,
    HEADER_TAG,
    RESPOND,
    RUN,
    WORK,
    NodeBench,
    compile_node,
)
from trebuchet.client.smp import Configuration, Core, Message, MessageType, data_message
from trebuchet.models.status import Status

CORES = (0xF0001000, 0xF0002000)
IMAGE = 1000
PIECE = 64


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    return compile_node(root, tmp_path_factory.mktemp("node"))


@pytest.fixture
def bench(lib):
    return NodeBench(lib, CORES, PIECE, IMAGE)


def header(kind, size):
    return struct.pack("<B3xI", kind, size)


def command(line):
    return Message(MessageType.COMMAND, line).pack()


def configuration(*cores, image=b"", sizes=(0, 0)):
    named = tuple(core if isinstance(core, Core) else Core(core, 0, 0) for core in cores)
    return Configuration(*sizes, named, image).message().pack()


def refused(status, id=0):
    return (RESPOND, status, id)


def expected(stream, plan=0):
    """Naive model: what one connection's bytes lead to, and whether it was closed for it.

    ``plan``: operand bytes that the configuration before them asked for.
    """
    found = []
    while stream:
        kind = stream[0]
        size = int.from_bytes(stream[4:8], "little")
        if len(stream) < 8:
            return [*found, refused(Status.TRUNCATED)], True
        payload, rest = stream[8 : 8 + size], stream[8 + size :]
        cut = len(payload) < size
        id = int.from_bytes(payload[:4], "little") if len(payload) >= 4 else 0
        if kind == MessageType.CONFIGURATION:
            if size > 12 + 12 * len(CORES) + IMAGE:
                return [*found, refused(Status.TOO_LARGE)], True
            if cut:
                return [*found, refused(Status.TRUNCATED)], True
            outcome, plan = _configure(payload, plan)
            found += outcome
        elif kind == MessageType.DATA:
            if size > PIECE:
                return [*found, refused(Status.TOO_LARGE)], True
            if cut:
                return [*found, refused(Status.TRUNCATED, id)], True
            if size < 4:
                found.append(refused(Status.BAD_LENGTH))
            elif plan not in (0, size - 4):
                found.append(refused(Status.BAD_LENGTH, id))
            else:
                found.append((WORK, id, payload[4:]))
        elif kind == MessageType.COMMAND:
            if size > min(127, PIECE):
                return [*found, refused(Status.TOO_LARGE)], True
            if cut:
                return [*found, refused(Status.TRUNCATED)], True
            found.append((RUN, payload))
        else:
            return [*found, refused(Status.BAD_TYPE)], True
        stream = rest
    return found, False


def _configure(payload, plan):
    if len(payload) < 12:
        return [refused(Status.BAD_LENGTH)], plan
    inputs, outputs, count = struct.unpack_from("<III", payload)
    if count > len(CORES):
        return [refused(Status.BAD_DATA)], plan
    image = payload[12 + 12 * count :]
    if len(payload) < 12 + 12 * count:
        return [refused(Status.BAD_LENGTH)], plan
    if len(image) > IMAGE:
        return [refused(Status.TOO_LARGE)], plan
    mask = 0
    for k in range(count):
        control, *bases = struct.unpack_from("<III", payload, 12 + 12 * k)
        if any(bases) or control not in CORES or mask >> CORES.index(control) & 1:
            return [refused(Status.BAD_DATA)], plan
        mask |= 1 << CORES.index(control)
    return [(CONFIGURE, inputs, outputs, mask, image), refused(Status.OK)], inputs


def test_a_session_of_every_kind(bench):
    operand = bytes(range(40))
    bench.feed(
        command(b"status")
        + data_message(7, operand).pack()
        + configuration(CORES[1], image=b"image" * 50, sizes=(40, 20))
        + data_message(8, operand).pack()
        + data_message(9, operand[1:]).pack()
        + command(b"")
    )
    assert bench.done == [
        (RUN, b"status"),
        (WORK, 7, operand),
        (CONFIGURE, 40, 20, 2, b"image" * 50),
        refused(Status.OK),
        (WORK, 8, operand),
        refused(Status.BAD_LENGTH, 9),
        (RUN, b""),
    ]


@pytest.mark.parametrize("piece", [8, 9, 11, 12, 13, 24, 31, 36, 100, 1024])
def test_a_configuration_in_pieces_of_every_size(lib, piece):
    image = random.Random(piece).randbytes(777)
    bench = NodeBench(lib, CORES, piece, IMAGE)
    assert bench.feed(configuration(*reversed(CORES), image=image, sizes=(5, 6))) == b""
    assert bench.done == [(CONFIGURE, 5, 6, 3, image), refused(Status.OK)]


@pytest.mark.parametrize(
    "message",
    [command(b"status"), data_message(0x01020304, b"operand").pack()]
    + [configuration(CORES[0], image=bytes(200)), configuration()],
)
def test_every_truncation(lib, message):
    for length in range(1, len(message)):
        bench = NodeBench(lib, CORES, PIECE, IMAGE)
        bench.feed(message[:length])
        id = 0x01020304 if message[0] == MessageType.DATA and length >= 12 else 0
        assert bench.done == [refused(Status.TRUNCATED, id)], length
        bench.done.clear()
        bench.feed(command(b"again"), session=1)
        bench.feed(configuration(CORES[0]), session=1)
        assert bench.done == [(RUN, b"again"), (CONFIGURE, 0, 0, 1, b""), refused(Status.OK)]


@pytest.mark.parametrize("kind", [0, 2, 4, 6, 7, 8])
@pytest.mark.parametrize("size", [0, 1, 1 << 31])
def test_unknown_types_close(bench, kind, size):
    assert bench.feed(header(kind, size) + b"rest") == b"rest"
    assert bench.done == [refused(Status.BAD_TYPE)]


@pytest.mark.parametrize(
    ("kind", "largest"),
    [(1, 12 + 12 * len(CORES) + IMAGE), (3, PIECE), (5, PIECE)],
)
def test_oversize_closes(lib, kind, largest):
    for size in (largest + 1, 1 << 31, (1 << 32) - 1, (1 << 32) - 12):
        bench = NodeBench(lib, CORES, PIECE, IMAGE)
        bench.feed(header(kind, size) + b"rest")
        assert bench.done == [refused(Status.TOO_LARGE)]
        assert not bench.node.busy
    bench = NodeBench(lib, CORES, PIECE, IMAGE)
    bench.feed(header(kind, largest), fin=False)
    assert bench.done == []


def test_a_long_command_is_refused_whatever_the_piece(lib):
    bench = NodeBench(lib, CORES, 1024, IMAGE)
    bench.feed(command(b"x" * 127) + command(b"x" * 128))
    assert bench.done == [(RUN, b"x" * 127), refused(Status.TOO_LARGE)]


@pytest.mark.parametrize(
    ("cores", "status"),
    [
        ((0xF0003000,), Status.BAD_DATA),
        ((CORES[0], CORES[0]), Status.BAD_DATA),
        ((*CORES, CORES[0]), Status.BAD_DATA),
        ((Core(CORES[0], 16, 0),), Status.BAD_DATA),
        ((Core(CORES[0], 0, 16),), Status.BAD_DATA),
        ((), Status.OK),
        (CORES, Status.OK),
    ],
)
def test_cores_that_a_configuration_may_name(bench, cores, status):
    """A refused one is read to its end: the connection goes on, and nothing has changed."""
    assert bench.feed(configuration(*cores, image=bytes(300)) + command(b"next")) == b""
    assert [entry for entry in bench.done if entry[0] != CONFIGURE] == [
        refused(status),
        (RUN, b"next"),
    ]
    assert (bench.node.plan.image_length == 300) == (status == Status.OK)


@pytest.mark.parametrize("count", [2, 3, 1 << 31, (1 << 32) - 1])
def test_a_count_that_the_message_has_no_room_for(bench, count):
    payload = struct.pack("<III", 1, 2, count) + bytes(23)
    bench.feed(Message(MessageType.CONFIGURATION, payload).pack() + command(b"next"))
    status = Status.BAD_LENGTH if count == 2 else Status.BAD_DATA
    assert bench.done == [refused(status), (RUN, b"next")]


def test_an_image_that_fails_changes_nothing(bench):
    bench.feed(configuration(CORES[0], sizes=(40, 20)))
    bench.verdict = Status.BAD_CHECKSUM
    bench.feed(configuration(CORES[1], image=b"bad", sizes=(1, 1)))
    assert bench.done[-1] == refused(Status.BAD_CHECKSUM)
    assert (bench.node.plan.input_size, bench.node.plan.cores) == (40, 1)


def test_one_configuration_at_a_time(bench):
    """Others get BUSY; their commands and data are answered."""
    message = configuration(CORES[0], image=bytes(300))
    bench.feed(message[:100], session=1, fin=False)
    assert bench.feed(message, session=2) == message[8:]
    bench.feed(command(b"role") + data_message(1, b"x").pack(), session=3)
    assert bench.done == [refused(Status.BUSY), (RUN, b"role"), (WORK, 1, b"x")]


def test_a_stalled_configuration_gives_way(bench):
    message = configuration(CORES[0], image=bytes(300))
    bench.now = (1 << 32) - 5000  # the clock wraps meanwhile
    bench.feed(message[:72], session=1, fin=False)
    bench.now = 4999
    bench.feed(message, session=2)
    assert bench.done.pop() == refused(Status.BUSY)
    bench.now = 5000
    bench.feed(message, session=2)
    assert bench.done == [(CONFIGURE, 0, 0, 1, bytes(300)), refused(Status.OK)]
    assert bench.notes == ["a configuration stopped in the middle; given up for another"]
    # The first one goes on too late.
    assert not bench.take(1, message[72:136])
    assert bench.done[-1] == refused(Status.ABORTED)


@pytest.mark.parametrize("request_of_new", [command(b"hi"), configuration(CORES[1])])
def test_a_session_that_was_lost_without_a_word(bench, request_of_new):
    """Its number comes again with another connection."""
    bench.feed(configuration(CORES[0], image=bytes(300))[:72], session=1, fin=False)
    assert bench.due.pop(1)[0] != HEADER_TAG  # the mailbox forgets it
    bench.feed(request_of_new, session=1)
    bench.feed(configuration(CORES[1]), session=2)
    assert refused(Status.BUSY) not in bench.done
    assert bench.done[-1] == refused(Status.OK)
    assert bench.notes == ["a configuration stopped in the middle: its connection was lost"]


def test_heads_of_answers(lib):
    head = bytes(12)
    lib.node_head(head, 6, 0x01020304, 0x0A0B0C0D)
    assert head == struct.pack("<B3xII", 6, 0x01020304, 0x0A0B0C0D)


def _random_message(rng):
    kind = rng.choice([1, 1, 1, 3, 5, 5, rng.randrange(256)])
    cores = [rng.choice([*CORES, rng.getrandbits(32)]) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    if kind == 1 and rng.random() < 0.8:
        bases = [Core(c, rng.choice([0] * 9 + [4]), 0) for c in cores]
        size = rng.choice([0, 1, 100, 940, 988, 1000, 1001])
        message = configuration(*bases, image=rng.randbytes(size), sizes=(rng.choice([0, 4]), 9))
    else:
        message = header(kind, size := rng.choice([0, 1, 3, 4, 8, 40, 64, 65])) + rng.randbytes(
            size
        )
    if rng.random() < 0.05:
        at = rng.randrange(len(message))
        message = message[:at] + bytes((rng.getrandbits(8),)) + message[at + 1 :]
    return message


@pytest.mark.parametrize("seed", range(20))
def test_random_streams_do_as_the_model(lib, seed):
    rng = random.Random(seed)
    for _ in range(100):
        stream = b"".join(_random_message(rng) for _ in range(rng.randint(1, 6)))
        if rng.random() < 0.3:
            stream = stream[: rng.randrange(1, len(stream) + 1)]
        bench = NodeBench(lib, CORES, PIECE, IMAGE)
        left = bench.feed(stream)
        want, closed = expected(stream)
        assert bench.done == want
        assert closed or not left
