"""Records and weights through the whole simulated board, from the command line's side."""

import json
import sys

import numpy as np
import pytest
from e2e_board import assert_drained, board_in_simulation, quiet_counters, status
from sim_tops import needs_network
from trebuchet.client import smp
from trebuchet.models.ecg import data, model, train
from trebuchet.models.ecg.record import RecordStream

pytestmark = [pytest.mark.slow, needs_network]

RUN = ("--record", "synthetic", "--minutes", "0.5", "--json")


@pytest.fixture(scope="module")
def board():
    with board_in_simulation() as running:
        yield running


def ecg(board, *arguments):
    command = [sys.executable, "-m", "trebuchet.host.cli", "ecg", *arguments]
    done = board.run(command, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_record_in_parts_and_in_blocks(board):
    for option, streamed in (("--stream", True), ("--independent", False)):
        run = json.loads(ecg(board, "run", board.ip, *RUN, option))
        assert run["streamed"] == streamed
        assert run["differing_messages"] == 0
        assert run["board"]["sensitivity"] > 0.9


def test_connections_that_break_off_leave_nothing_behind(board):
    """A client vanishes in mid-record, another in mid-message; the next record begins afresh."""
    fresh = quiet_counters(board)
    samples = data.load("synthetic", 0.5).samples[:4800]
    for end in (len(samples), 1000):
        connection = board.connect(smp.PORT)
        parts = b"".join(
            smp.data_message(i, part.astype("<i2").tobytes(), smp.MessageType.STREAM).pack()
            for i, part in enumerate(np.split(samples, 3))
        )
        connection.sendall(parts[: 2 * end])
        board.sleep(0.2)
        connection.close()
    assert_drained(lambda: quiet_counters(board), fresh, seconds=60)
    stream, decoder = RecordStream(), smp.Decoder()
    with board.connect(smp.PORT) as connection:
        for number, part in enumerate([*np.split(samples, 3), samples[:0]]):
            payload = part.astype("<i2").tobytes()
            connection.sendall(smp.data_message(number, payload, smp.MessageType.STREAM).pack())
            while not (answers := decoder.feed(connection.recv(4096))):
                pass
            expected = stream.block(part) if len(part) else stream.end()
            assert smp.parse_data(answers[0].payload) == (number, expected)


def test_weights_are_replaced(board, tmp_path):
    before = model.load_weights()
    other = model.Weights(-before.w1, before.b1, before.w2[::-1], before.b2, before.table)
    path = tmp_path / "weights.json"
    train.write_weights(other, path)
    old = json.loads(ecg(board, "run", board.ip, *RUN))
    try:
        assert "1442 words" in ecg(board, "weights", "load", board.ip, str(path))
        assert status(board)["engines"]["ecg"]["weights_words"] == 1442
        run = json.loads(ecg(board, "run", board.ip, *RUN, "--weights", str(path)))
        assert run["differing_messages"] == 0
        assert run["beats"] != old["beats"]
    finally:
        ecg(board, "weights", "load", board.ip, str(model.WEIGHTS_FILE))
    assert json.loads(ecg(board, "run", board.ip, *RUN)) | {"seconds": 0} == old | {"seconds": 0}
