"""The simulated board and a client written from distributed-fpga-framework, 3.2 and 4.2.2, alone.

Nothing of the project's own client is used here: messages are packed and read as the source has
them. The board is connected to, and connects to a server; it knows no other way. Behind a NAT:
``test_jobd_board.py``.
"""

import random
import socket
import struct

import pytest
from e2e_board import assert_drained, know_address, quiet_counters, rise, status_counters
from e2e_clients import Witness, ecg_blocks, read_all, reset
from e2e_smp import FULL, HUNG, LONGEST, LOOPBACK, made, registers, simulated
from paper_client import (
    CONFIGURATION,
    DATA,
    RESPONSE,
    configuration,
    data,
    expect_result,
    expect_status,
    message,
    receive,
)
from sim_tops import needs_network
from trebuchet.models import roles
from trebuchet.models.config_message import cores_of_build
from trebuchet.models.ecg import model
from trebuchet.models.image import Image, Kind
from trebuchet.models.status import Status

pytestmark = [pytest.mark.slow, needs_network]

PORT, SERVER = 4000, 4321
SAMPLES = ecg_blocks(random.Random(5), 3)
BLOCKS = [samples.astype("<i2").tobytes() for samples in SAMPLES]
RESULTS = [model.classify_block(samples) for samples in SAMPLES]


@pytest.fixture(scope="module")
def ecg():
    return cores_of_build(made().folder.parent)["ecg"]


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """With a server to connect to; afterwards every session is free again."""
    with simulated(tmp_path_factory.mktemp("smp"), f"server=192.0.2.1:{SERVER}\n") as board:
        know_address(board)
        fresh = quiet_counters(board)
        yield board
        assert_drained(lambda: quiet_counters(board), fresh)


def connected(board, how):
    """A connection to the board's roles: ours, or the board's."""
    if how == "passive":
        return board.connect(PORT)
    with board.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((board.host_ip, SERVER))
        server.listen(4)
        server.settimeout(120)
        connection, _ = server.accept()
        connection.settimeout(120)
        return connection


@pytest.mark.parametrize("how", ["passive", "active"])
def test_configuration_response_data_results(board, ecg, how):
    """All is sent at once; the response comes first. Then a benchmark, and the cores again."""
    with connected(board, how) as connection:
        sent = configuration(ecg) + b"".join(data(k, block) for k, block in enumerate(BLOCKS))
        connection.sendall(sent)
        expect_status(connection, 0)
        for ident, result in enumerate(RESULTS):
            expect_result(connection, ident, result)
        # 4.2.2: no cores, and a payload of 16 bytes; the first 16 of an input come back.
        connection.sendall(message(CONFIGURATION, struct.pack("<IIII", 64, 1500, 0, 20)))
        connection.sendall(data(7, bytes(range(64))))
        expect_status(connection, 0)
        kind, payload = receive(connection)
        assert (kind, len(payload)) == (DATA, 4 + 1500)
        assert payload[:20] == struct.pack("<I", 7) + bytes(range(16))
        # Another connection still has its port's role.
        with board.connect(PORT) as other:
            other.sendall(data(8, BLOCKS[0]))
            expect_result(other, 8, RESULTS[0])
        connection.sendall(configuration(ecg) + data(9, BLOCKS[1]))
        expect_status(connection, 0)
        expect_result(connection, 9, RESULTS[1])


def test_configurations_that_contradict_the_build(board, ecg):
    """Each is answered with its status, changes nothing, and the connection goes on."""
    other, ours = (
        Image(Kind.firmware, name, "1", bytes(range(256)) * 160).pack() for name in ("other", "sim")
    )
    with board.connect(PORT) as connection:
        for wrong, status in [
            (configuration(ecg + 4), Status.BAD_DATA),
            (configuration(ecg, ecg), Status.BAD_DATA),
            (message(CONFIGURATION, struct.pack("<IIIIII", 0, 0, 1, ecg, 1, 0)), Status.BAD_DATA),
            (message(CONFIGURATION, struct.pack("<III", 0, 0, 2)), Status.BAD_LENGTH),
            (message(CONFIGURATION, b"abc"), Status.BAD_LENGTH),
            (message(CONFIGURATION, b""), Status.BAD_LENGTH),
            (configuration(ecg, bitstream=other), Status.WRONG_BOARD),
            (configuration(ecg, bitstream=ours[:-9]), Status.TRUNCATED),
            (configuration(ecg, bitstream=b"RBF" * 14_000), Status.BAD_DATA),
        ]:
            connection.sendall(wrong + data(1, BLOCKS[0]))
            expect_status(connection, status)
            expect_result(connection, 1, RESULTS[0])


def test_images_that_do_not_end(board, ecg):
    """Cut off by FIN, or by RST, or endless: one status, and the next is taken."""
    begun = configuration(ecg, bitstream=bytes(60_000))
    with board.connect(PORT) as connection:
        connection.sendall(begun[:40_000])
        connection.shutdown(socket.SHUT_WR)
        expect_status(connection, Status.TRUNCATED)
        assert read_all(connection) == b""
    lost = board.connect(PORT)
    lost.sendall(begun[:40_000])
    with board.connect(PORT) as connection:
        connection.sendall(message(CONFIGURATION, b"", 0xFFFF_FFFF) + bytes(1000))
        kind, payload = receive(connection)
        assert kind == RESPONSE
        assert payload[0] in (Status.TOO_LARGE, Status.BUSY)
        assert read_all(connection) == b""
    reset(lost)
    with board.connect(PORT) as connection:
        connection.sendall(configuration(ecg))
        while (payload := receive(connection)[1])[0] == Status.BUSY:
            assert read_all(connection) == b""
            connection = board.connect(PORT)
            connection.sendall(configuration(ecg))
        assert payload[0] == 0


def test_absent_and_stopped_roles(board, ecg):
    """A role is named by a reserved byte, which a client of the source leaves 0."""
    block = BLOCKS[0]
    named = struct.pack("<BBxxII", DATA, 9, 4 + len(block), 3) + block
    with board.connect(PORT) as connection, board.connect(80) as manager:
        connection.sendall(named)
        expect_status(connection, Status.NO_ROLE)
        manager.sendall(message(5, b"role ecg off"))
        assert receive(manager)[1][0] == 0
        connection.sendall(data(4, block))
        expect_status(connection, Status.STOPPED)
        # A configuration that names the core switches it on.
        connection.sendall(configuration(ecg) + data(5, block))
        expect_status(connection, 0)
        expect_result(connection, 5, RESULTS[0])


def data_for(role, ident, content):
    """Data for a role by its number: one more in the first reserved byte."""
    return struct.pack("<BBxxII", DATA, 1 + role, 4 + len(content), ident) + content


def command(manager, line):
    """A command by port 80, which must succeed; returns what the board says."""
    manager.sendall(message(5, line.encode()))
    kind, reply = receive(manager)
    assert (kind, reply[0]) == (6, Status.OK), (line, reply)
    return reply[4:].decode()


def test_the_largest_message_comes_back(board):
    """All its bytes; and a result as long as a result slot, from the benchmark role."""
    rng = random.Random(7)
    with board.connect(PORT) as connection:
        operands = [rng.randbytes(length) for length in (FULL, FULL - 1, 2033)]
        for ident, operand in enumerate(operands):
            connection.sendall(data_for(LOOPBACK, ident, operand))
            expect_result(connection, ident, operand)
        connection.sendall(message(CONFIGURATION, struct.pack("<IIII", 0, LONGEST, 0, 0)))
        expect_status(connection, 0)
        connection.sendall(data(3, operands[0]))
        expect_result(connection, 3, roles.benchmark(operands[0], LONGEST, LONGEST)[1])
        connection.sendall(message(CONFIGURATION, struct.pack("<IIII", 0, LONGEST + 1, 0, 0)))
        expect_status(connection, 0)
        connection.sendall(data(4, operands[0]))
        expect_status(connection, Status.NO_ROOM)
        connection.sendall(data_for(LOOPBACK, 5, bytes(FULL + 1)))
        expect_status(connection, Status.TOO_LARGE)
        assert read_all(connection) == b""


def hung_job(connection, ident):
    """A job of the role that hangs, then one of loopback, byte-exact; return the first's status."""
    connection.sendall(data_for(HUNG, ident, b"x" * ident))
    operand = random.Random(f"hung {ident}").randbytes(3000)
    connection.sendall(data_for(LOOPBACK, ident, operand))
    kind, payload = receive(connection)
    assert (kind, payload[4:]) == (RESPONSE, struct.pack("<I", ident))
    expect_result(connection, ident, operand)
    return Status(payload[0])


def test_a_role_that_hangs(board):
    """Its jobs are ``ABORTED``, after three resets in a row ``STOPPED``; others go on, byte-exact.

    It keeps the memory busy and ends no burst by itself. Connections that had such an answer go on;
    so does one that has its job in the role beside another's.
    """
    watchdog = registers("hung")["watchdog"]["address"]
    before = status_counters(board)
    with (
        Witness(board, "hung") as witness,
        board.connect(80) as manager,
        board.connect(PORT) as one,
        board.connect(PORT) as two,
    ):
        command(manager, f"poke {watchdog:#x} 500")
        for connection in (one, two):
            connection.sendall(data_for(HUNG, 1, b"x"))
        for connection in (one, two):
            expect_status(connection, Status.ABORTED)
        witness.mark()
        # One reset may have ended both jobs, or each its own.
        statuses = [hung_job(one, ident) for ident in range(2, 5)]
        again = statuses.count(Status.ABORTED)
        assert again in (1, 2)
        assert statuses == [Status.ABORTED] * again + [Status.STOPPED] * (3 - again)
        assert rise(before, status_counters(board))["hung.hangs"] == 3
        assert "barred" in command(manager, "role hung")
        assert hung_job(two, 5) == Status.STOPPED
        command(manager, "role hung reset")
        assert hung_job(two, 6) == Status.ABORTED
        witness.mark()
        command(manager, "role hung off")
        assert hung_job(two, 7) == Status.STOPPED
    risen = rise(before, status_counters(board))
    assert not {"ecg.hangs", "loopback.hangs", "benchmark.hangs", "ecg.errors"} & risen.keys()
