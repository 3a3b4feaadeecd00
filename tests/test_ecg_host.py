"""The ECG client against a stand-in for a board: good ones, wrong ones, and ones that go away."""

import json
import socket
import threading
from contextlib import contextmanager, suppress

import matplotlib
import numpy as np
import pytest
from trebuchet.client import smp
from trebuchet.host.ecg import cli, client, fetch, figures, plot, weights
from trebuchet.models.ecg import data, model
from trebuchet.models.ecg import record as record_model
from trebuchet.models.ecg.words import ORDERS, weight_words
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.status import Status
from typer.testing import CliRunner


@pytest.fixture(scope="module")
def record():
    return data.load("synthetic", 1)


@contextmanager
def board(answer):
    """A TCP server; ``answer(message)`` returns the messages to send back, None to hang up."""
    server = socket.create_server(("127.0.0.1", 0))
    seen = []

    def serve():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            # A client that was refused leaves with answers unread, which resets the connection.
            with connection, suppress(ConnectionError):
                converse(connection, answer, seen)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1], seen
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(10)
        assert not thread.is_alive()


def converse(connection, answer, seen):
    decoder = smp.Decoder()
    while received := connection.recv(1 << 16):
        for message in decoder.feed(received):
            seen.append(message)
            replies = answer(message)
            if replies is None:
                return
            for reply in replies:
                connection.sendall(reply.pack())


def golden(message):
    id, payload = smp.parse_data(message.payload)
    return [smp.data_message(id, model.classify_block(np.frombuffer(payload, "<i2")))]


def test_a_record_comes_back_as_the_golden_model_reads_it(record):
    told = []
    with board(golden) as (port, seen):
        run = client.run_record(
            "127.0.0.1",
            port,
            record,
            progress=lambda done, total: told.append((done, total)),
            streamed=False,
        )
    assert run.differing == ()
    run.require_equal()
    assert run.messages == len(seen)
    assert told == [(i, run.messages) for i in range(1, run.messages + 1)]
    expected = client.read_with_model(record, streamed=False)
    assert (run.board.positions == expected.positions).all()
    assert (run.board.labels == expected.labels).all()
    assert run.board.score(record).accuracy > 0.9


def test_answers_may_come_in_any_order(record):
    held = []

    def backwards(message):
        held.append(message)
        if len(held) < 3 and smp.parse_data(message.payload)[0] != 7:
            return []
        replies = [reply for one in reversed(held) for reply in golden(one)]
        held.clear()
        return replies

    with board(backwards) as (port, seen):
        run = client.run_record("127.0.0.1", port, record, outstanding=3, streamed=False)
    assert len(seen) == 7  # so that message 7 is the last one
    assert run.differing == ()


@pytest.mark.parametrize("outstanding", [1, 2, 5])
def test_no_more_messages_are_under_way_than_asked_for(record, outstanding):
    held = []

    def lazy(message):
        held.append(message)
        assert len(held) <= outstanding
        last = smp.parse_data(message.payload)[0] == 7
        if len(held) < outstanding and not last:
            return []
        replies = [reply for one in held for reply in golden(one)] if last else golden(held[0])
        del held[: len(held) if last else 1]
        return replies

    with board(lazy) as (port, _):
        run = client.run_record("127.0.0.1", port, record, outstanding=outstanding, streamed=False)
    assert run.differing == ()


class RecordBoard:
    """Answers as a board does that takes records; ``streams`` = False: as one that does not."""

    def __init__(self, streams=True):
        self.streams = streams
        self.stream = record_model.RecordStream()

    def __call__(self, message):
        if message.kind == smp.MessageType.DATA:
            return golden(message)
        if not self.streams:
            return [smp.response_message(Status.BAD_TYPE, 0)]
        id, payload = smp.parse_data(message.payload)
        samples = np.frombuffer(payload, "<i2")
        result = self.stream.block(samples) if len(samples) else self.stream.end()
        return [smp.data_message(id, result)]


@pytest.mark.parametrize("streamed", [None, True])
def test_a_record_goes_in_parts(record, streamed):
    with board(RecordBoard()) as (port, seen):
        run = client.run_record("127.0.0.1", port, record, streamed=streamed)
    run.require_equal()
    assert run.streamed
    assert [message.kind for message in seen] == [smp.MessageType.STREAM] * run.messages
    assert len(seen[-1].payload) == 4, "the empty part ends the record"
    assert sum(len(message.payload) - 4 for message in seen) == 2 * len(record.samples)
    found = client.read_with_model(record).positions
    assert (run.board.positions == found).all()
    assert (np.diff(found) >= record_model.GAP).all()
    assert run.board.score(record).sensitivity > 0.98


def test_a_board_without_records_gets_blocks(record):
    with board(RecordBoard(streams=False)) as (port, _):
        run = client.run_record("127.0.0.1", port, record)
        assert not run.streamed
        run.require_equal()
        with pytest.raises(client.Refused, match="refused message [0-9]+: BAD_TYPE"):
            client.run_record("127.0.0.1", port, record, streamed=True)


def test_a_board_that_hangs_up_on_the_first_part_gets_blocks(record):
    """It answers the header, and closes while the client still sends other parts."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = server.accept()
        with connection:
            connection.recv(8)
            connection.sendall(smp.response_message(Status.BAD_TYPE, 0).pack())
        connection, _ = server.accept()
        with connection:
            converse(connection, golden, [])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with server:
        run = client.run_record("127.0.0.1", server.getsockname()[1], record, timeout=10)
        thread.join(10)
    assert not run.streamed
    run.require_equal()


def test_weights_go_as_one_configuration(tmp_path):
    """The words in the bitstream's place; then the board classifies with them."""
    path = tmp_path / "weights.json"
    path.write_bytes(model.WEIGHTS_FILE.read_bytes())
    with board(lambda m: [smp.response_message(Status.OK, 0)]) as (port, seen):
        args = ["weights", "load", "127.0.0.1", str(path), "--port", str(port)]
        shown = CliRunner().invoke(cli.app, args)
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("1442 words are in place")
    assert [message.kind for message in seen] == [smp.MessageType.CONFIGURATION]
    sent = smp.parse_configuration(seen[0].payload)
    expected = weight_words(model.load_weights(), ORDERS["faithful"])
    assert np.frombuffer(sent.bitstream, "<u2").tolist() == expected
    assert (sent.input_size, sent.output_size, sent.cores) == (0, 0, ())


REFUSALS = {
    "old board": (lambda m: [smp.response_message(Status.BAD_TYPE, 0)], "the weights: BAD_TYPE"),
    "hangs up": (lambda m: None, "closed the connection with 1 message unanswered"),
    "confused": (lambda m: [smp.data_message(1, b"")], "answered with a DATA message"),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_refused_weights_are_explained(kind):
    answer, message = REFUSALS[kind]
    with board(answer) as (port, _), pytest.raises(TrebuchetError, match=message):
        weights.send_weights("127.0.0.1", port, model.load_weights(), model.FAITHFUL)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read"),
        ("{", "does not hold weights"),
        ('{"w1": 1}', "does not hold weights"),
        ('{"w1": [[1, 1.5]]}', "does not hold weights: w1 must be lists of integers$"),
        ('{"w1": [["1"]]}', "does not hold weights: w1 must be lists of integers$"),
        *(
            (f'{{"w1": [{number}]}}', "does not hold weights")
            for number in ("1e19", "1e300", "10000000000000000000", "Infinity", "NaN")
        ),
        ("[" * 20000, "does not hold weights: it is nested too deep"),
    ],
)
def test_files_without_weights_are_explained(tmp_path, content, message):
    path = tmp_path / "weights.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(TrebuchetError, match=message):
        weights.read_weights(path, model.FAITHFUL)


@pytest.mark.parametrize(
    ("engine", "name"),
    [({}, "faithful"), ({"preset": 0}, "faithful"), ({"preset": 1}, "second"), (None, "faithful")],
)
def test_the_preset_is_the_board_s(monkeypatch, engine, name):
    def fetch(address, timeout):
        if engine is None:
            raise TrebuchetError("no status")
        return {"engines": {"ecg": engine}}

    monkeypatch.setattr(client, "fetch_status", fetch)
    assert client.board_preset("192.0.2.2").name == name


def test_a_wrong_bit_is_noticed(record):
    def wrong(message):
        replies = golden(message)
        if smp.parse_data(message.payload)[0] == 3:
            payload = bytearray(replies[0].payload)
            payload[-1] ^= 1
            return [smp.Message(smp.MessageType.DATA, bytes(payload))]
        return replies

    with board(wrong) as (port, _):
        run = client.run_record("127.0.0.1", port, record, streamed=False)
    assert run.differing == (2,)
    with pytest.raises(TrebuchetError, match=r"^1 of 7 results .* golden model \(messages 2\)"):
        run.require_equal()


BAD_BOARDS = {
    "refuses": (
        lambda m: [smp.response_message(Status.BAD_LENGTH, 0)],
        "refused message 1: BAD_LENGTH: the role cannot work on a payload of this length",
    ),
    "hangs up": (lambda m: None, "closed the connection with 1 message unanswered"),
    "wrong id": (lambda m: [smp.data_message(77, b"")], "answered message 77, which is not"),
    "odd result": (lambda m: [smp.data_message(1, b"x" * 17)], "a result of 17 bytes; it must be"),
    "floods": (
        lambda m: [smp.data_message(0, bytes(2000))],
        "an SMP payload must be at most 1028 bytes, not 2004",
    ),
    "configures": (
        lambda m: [smp.Message(smp.MessageType.CONFIGURATION, b"")],
        "sent a CONFIGURATION message",
    ),
}


@pytest.mark.parametrize("kind", BAD_BOARDS)
def test_bad_boards_are_explained_in_one_line(record, kind):
    answer, message = BAD_BOARDS[kind]
    with board(answer) as (port, _), pytest.raises(TrebuchetError) as caught:
        client.run_record("127.0.0.1", port, record, outstanding=1, timeout=10)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_silent_board_times_out(record):
    with board(lambda m: []) as (port, _), pytest.raises(TrebuchetError, match="nothing for 0.2 s"):
        client.run_record("127.0.0.1", port, record, timeout=0.2)


def test_short_records_are_explained():
    short = data.Record("x", "test", np.zeros(63, np.int16), None, None)
    with pytest.raises(TrebuchetError, match="^record x: a record must have at least 64 samples"):
        client.read_with_model(short)


def test_strips_show_the_rare_classes_and_do_not_overlap():
    record = data.load("synthetic", 8)
    reading = client.read_with_model(record)
    strips = plot.interesting_strips(record, reading)
    length = plot.STRIP_SECONDS * data.RATE
    assert len(strips) == 3
    assert all(b - a >= length for a, b in zip(strips, strips[1:], strict=False))
    for start in strips:
        inside = (reading.positions >= start) & (reading.positions < start + length)
        assert len(np.unique(reading.labels[inside])) > 1


def test_verdicts_mark_what_the_annotations_contradict():
    positions, labels = np.array([100, 500, 900]), np.array([0, 4, -1])
    record = data.Record("x", "test", np.zeros(1200, np.int16), positions, labels)
    found = np.array([104, 700, 904])
    verdicts = plot.Verdicts(record, client.Reading(found, np.array([4, 0, 0]), np.zeros((3, 6))))
    assert verdicts.wrong.tolist() == [True, True, False]
    assert verdicts.missed.tolist() == [500]


@pytest.mark.parametrize("minutes", [0.02, 1])
@pytest.mark.parametrize("annotated", [True, False])
def test_pictures_are_drawn_for_every_record(tmp_path, minutes, annotated):
    record = data.load("synthetic", minutes)
    if not annotated:
        record = data.Record("x", "test", record.samples, None, None)
    path = tmp_path / "deep" / "ecg.png"
    plot.draw(record, client.read_with_model(record), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 10_000


def test_the_picture_names_its_record(tmp_path, record):
    path = tmp_path / "ecg.svg"
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        plot.draw(record, client.read_with_model(record), path)
    text = path.read_text()
    assert "ECG record synthetic, 1.0 min" in text
    assert record.source in text


def test_command_line_run_against_a_board(tmp_path):
    picture = tmp_path / "ecg.png"
    args = ["run", "127.0.0.1", "--record", "synthetic", "--minutes", "1", "--independent"]
    with board(golden) as (port, _):
        args += ["--port", str(port)]
        shown = CliRunner().invoke(cli.app, [*args, "--plot", str(picture)])
        as_json = CliRunner().invoke(cli.app, [*args, "--json"])
    assert shown.exit_code == 0, shown.output
    assert "byte for byte" in shown.output.replace("\n", " ")
    assert "confusion matrix" in shown.output
    assert picture.exists()
    content = json.loads(as_json.stdout)
    assert content["differing_messages"] == 0
    assert content["messages"] == 7
    assert content["board"] == content["golden"]
    assert sum(content["beats"].values()) == content["board"]["detected"]


def test_the_time_out_is_for_the_status_too(monkeypatch):
    def fetch(address, timeout):
        asked.append((address, timeout))
        raise TrebuchetError("no status")

    asked = []
    monkeypatch.setattr(client, "fetch_status", fetch)
    with board(lambda m: []) as (port, _):
        args = ["run", "127.0.0.1", "--port", str(port), "--record", "synthetic", "--minutes", "1"]
        shown = CliRunner().invoke(cli.app, [*args, "--timeout", "0.2"])
    assert str(shown.exception).endswith("sent nothing for 0.2 s")
    assert asked == [("127.0.0.1", 0.2)]


def test_command_line_says_that_the_record_is_synthetic(tmp_path, monkeypatch):
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shown = CliRunner().invoke(cli.app, ["run", "--minutes", "0.5"])
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.output.split())
    assert "No MIT-BIH records were found, so a synthetic ECG stands in" in text
    assert "golden model, no board" in text
    listed = CliRunner().invoke(cli.app, ["info"])
    assert listed.exit_code == 0
    assert "none were found" in listed.output


@pytest.mark.parametrize("form", [[], ["--stream"]])
def test_parts_of_a_record_have_one_connection(form):
    result = CliRunner().invoke(cli.app, ["run", "x", "--connections", "2", *form])
    assert isinstance(result.exception, TrebuchetError)
    assert str(result.exception) == "parts of a record go over one connection: add --independent"


@pytest.mark.parametrize("record", ["synthetic", "119"])
@pytest.mark.parametrize("minutes", ["nan", "inf", "-1", "0", "1441"])
def test_minutes_have_bounds(minutes, record):
    result = CliRunner().invoke(cli.app, ["run", "--record", record, "--minutes", minutes])
    assert isinstance(result.exception, TrebuchetError)
    assert str(result.exception) == (
        f"the number of minutes must be above 0 and at most 1440, not {minutes}"
    )


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        ("x.foo", "the picture must be a .png, .svg or .pdf file, not 'x.foo'"),
        ("file/x.png", "cannot write .*file: Not a directory; choose another folder"),
        ("/proc/x.png", "cannot write /proc: "),
        ("folder.png", "cannot write the picture .*folder.png: it is a folder"),
    ],
)
def test_a_picture_that_cannot_be_is_known_before_the_run(monkeypatch, tmp_path, picture, message):
    monkeypatch.setattr(cli, "record_or_default", lambda *_: pytest.fail("it ran"))
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    result = CliRunner().invoke(cli.app, ["run", "--plot", str(tmp_path / picture)])
    with pytest.raises(TrebuchetError, match=f"^{message}"):
        raise result.exception
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.png"]


def test_a_picture_that_becomes_impossible_is_one_line(tmp_path, record):
    with pytest.raises(TrebuchetError, match="^cannot write the picture .*: File name too long$"):
        plot.draw(record, client.read_with_model(record), tmp_path / ("x" * 253 + ".png"))


@pytest.mark.parametrize("name", ["file", "file/x"])
def test_a_folder_that_cannot_be_made_is_one_line(monkeypatch, tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(TrebuchetError, match=r"^cannot write .*/file"):
        fetch.fetch_database(tmp_path / name)
    with pytest.raises(TrebuchetError, match=r"^cannot write .*/file"):
        fetch.fetch_demo(tmp_path / name)
    monkeypatch.setattr(data, "list_records", lambda _: ["119", *dict(figures.EXAMPLES)])
    with pytest.raises(TrebuchetError, match=r"^cannot write .*/file"):
        figures.draw_figures(tmp_path / name)


def test_training_needs_records(tmp_path):
    result = CliRunner().invoke(cli.app, ["train", "--folder", str(tmp_path)])
    assert isinstance(result.exception, TrebuchetError)
    assert str(result.exception) == f"there are no records in {tmp_path}"


def test_weights_that_cannot_be_written_are_known_before_the_training(monkeypatch, tmp_path):
    monkeypatch.setattr("trebuchet.models.ecg.train.train", lambda *_, **__: pytest.fail("it ran"))
    (tmp_path / "file").touch()
    output = str(tmp_path / "file" / "weights.json")
    result = CliRunner().invoke(cli.app, ["train", "--folder", str(tmp_path), "--output", output])
    with pytest.raises(TrebuchetError, match=r"^cannot write .*/file"):
        raise result.exception
