"""`trebuchet manage` and `trebuchet update` against nodes that behave, and some that do not."""

import builtins
import contextlib
import io
import socket
import sys
import threading
import time

import pytest
from trebuchet.client import smp
from trebuchet.client.management import MAX_LINE, Reply
from trebuchet.client.owner import split_address
from trebuchet.host import manage
from trebuchet.host.cli import main
from trebuchet.host.options import open_board
from trebuchet.models.errors import LOST, TrebuchetError
from trebuchet.models.status import DESCRIPTIONS, Status


def reply(status, text=""):
    return smp.Message(smp.MessageType.REPLY, bytes((status, 0, 0, 0)) + text.encode())


def node(message):
    """A board in a few lines: what it answers to a message."""
    if message.kind == smp.MessageType.COMMAND:
        line = message.payload.decode()
        if line == "version":
            return reply(0, "0.1.0 on sim\n")
        if line == "reset":
            return reply(0)
        return reply(Status.UNKNOWN_COMMAND, "error: UNKNOWN_COMMAND\n")
    if message.kind == smp.MessageType.DATA:
        id, operand = smp.parse_data(message.payload)
        return smp.data_message(id, operand[::-1])
    image = smp.parse_configuration(message.payload).bitstream
    return smp.response_message(0 if image.startswith(b"TBIM") else Status.BAD_DATA, 0)


@contextlib.contextmanager
def serving(answer=node):
    """A node at 127.0.0.1; ``answer(message)``: message, raw bytes, or None to close."""
    seen = []

    def one(connection):
        decoder = smp.Decoder()
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                for message in decoder.feed(data):
                    seen.append(message)
                    said = answer(message)
                    if said is None:
                        return
                    connection.sendall(said if isinstance(said, bytes) else said.pack())

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, daemon=True).start()
    with listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}", seen


def run(capsys, *arguments):
    """Exit code, stdout and stderr of a command line."""
    with pytest.raises(SystemExit) as left:
        main(list(map(str, arguments)))
    out, err = capsys.readouterr()
    return left.value.code or 0, out, err


def test_twenty_commands_on_one_connection():
    with serving() as (board, seen), open_board(board, 15) as opened:
        for _ in range(20):
            assert opened.ask("version") == Reply(0, "0.1.0 on sim\n")
    assert [m.payload for m in seen] == [b"version"] * 20


def test_one_command(capsys):
    with serving() as (board, seen):
        assert run(capsys, "manage", board, "version") == (0, "0.1.0 on sim\n", "")
        assert run(capsys, "manage", board, "reset") == (0, "", "")
        run(capsys, "manage", board, "role", "ecg", "off")
    assert seen[-1].payload == b"role ecg off"


def test_the_console_over_the_network(capsys, monkeypatch):
    with serving() as (board, seen):
        said = run(capsys, "console", board, "--exec", "version", "--exec", "reset")
        assert said == (0, "0.1.0 on sim\n", "")
        code, out, err = run(capsys, "console", board, "--exec", "fly", "--exec", "version")
        assert (code, out, err.startswith(f"trebuchet: {board} answered UNKNOWN_COMMAND")) == (
            1,
            "",
            True,
        )
        assert [message.payload for message in seen] == [b"version", b"reset", b"fly"]
        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        lines = iter(["version", "exit"])
        monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
        assert run(capsys, "console", board) == (0, "0.1.0 on sim\n", "")


def test_a_command_that_fails(capsys):
    with serving() as (board, _):
        code, out, err = run(capsys, "manage", board, "fly")
    assert (code, out) == (1, "")
    described = DESCRIPTIONS[Status.UNKNOWN_COMMAND]
    assert err == f"trebuchet: {board} answered UNKNOWN_COMMAND: {described}\n"


@pytest.mark.parametrize(
    ("status", "text", "reason"),
    [
        (11, "error: BAD_ARGUMENT: the form is: log [LEVEL]\n", "BAD_ARGUMENT: the form is: log "),
        (14, "for versa_ecp5\n", "WRONG_BOARD: for versa_ecp5"),
        (200, "", "status 200, which this version does not know"),
    ],
)
def test_reasons_name_the_status(status, text, reason):
    assert Reply(status, text).reason.startswith(reason)
    assert "\n" not in Reply(status, text).reason


def test_a_script_stops_where_a_command_fails(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("version\n\n  fly  \nversion\n"))
    with serving() as (board, seen):
        code, out, err = run(capsys, "manage", board)
    assert (code, out) == (1, "0.1.0 on sim\n")
    assert "UNKNOWN_COMMAND" in err
    assert [m.payload for m in seen] == [b"version", b"fly"]


def test_a_script_stops_at_what_is_no_utf8(capsys, monkeypatch):
    script = io.TextIOWrapper(io.BytesIO(b"version\n\xff\nversion\n"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", script)
    with serving() as (board, seen):
        code, out, err = run(capsys, "manage", board)
    assert (code, out) == (1, "0.1.0 on sim\n")
    assert err == "trebuchet: a command must be UTF-8; its character 1 is not\n"
    assert len(seen) == 1


def test_an_argument_must_be_utf8(capsys):
    with serving() as (board, seen):
        code, out, err = run(capsys, "manage", board, "log", "\udcff")
    assert (code, out) == (1, "")
    assert err == "trebuchet: a command must be UTF-8; its character 5 is not\n"
    assert seen == []


def test_without_standard_input_a_command_is_needed(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with serving() as (board, _):
        code, out, err = run(capsys, "manage", board)
        assert (code, out) == (1, "")
        assert err == "trebuchet: standard input is closed; give the command as an argument\n"
        assert run(capsys, "manage", board, "version")[0] == 0


@pytest.mark.parametrize("seconds", ["inf", "nan", "1e12", "0"])
@pytest.mark.parametrize(
    "command",
    [
        *("manage x help", "update x y", "status x", "sessions x"),
        *("matmul run x", "ecg run x", "ecg weights load x y", "demo"),
    ],
)
def test_time_outs_have_bounds(capsys, command, seconds):
    code, _, err = run(capsys, *command.split(), "--timeout", seconds)
    assert code == 2
    assert "Invalid value for '--timeout'" in err


@pytest.mark.parametrize("end", ["exit", "quit", None])
def test_a_conversation_goes_on_after_a_failure(capsys, monkeypatch, end):
    lines = iter(
        ["version", "", "fly", "x" * (MAX_LINE + 1), "\udcff", "version", *([end] if end else [])]
    )

    def typed(prompt):
        assert prompt == f"{board}> "
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(builtins, "input", typed)
    with serving() as (board, seen):
        code, out, err = run(capsys, "manage", board)
    assert code == 0
    assert out.count("0.1.0 on sim\n") == 2
    assert [line.split(":")[1].split()[0] for line in err.splitlines()] == [
        "UNKNOWN_COMMAND",
        "a",
        "a",
    ]
    assert len(seen) == 3


def test_a_job(capsys):
    with serving() as (board, _), open_board(board, 15) as opened:
        assert opened.work(b"abc") == b"cba"
        with pytest.raises(TrebuchetError, match="must have at most 1020 bytes, not 1021; larger "):
            opened.work(bytes(1021))


def test_update(capsys, tmp_path):
    image = tmp_path / "firmware.img"
    image.write_bytes(b"TBIM" + bytes(100_000))
    with serving() as (board, seen):
        code, out, err = run(capsys, "update", board, image)
    assert (code, err) == (0, "")
    assert out == f"{board} has firmware.img in flash (100004 bytes)\n"
    assert seen == [smp.Configuration(0, 0, (), image.read_bytes()).message()]


def test_an_update_may_take_longer_the_larger_the_image_is(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(manage, "UPDATE_TIMEOUT", 0.2)
    monkeypatch.setattr(manage, "SECTOR_TIMEOUT", 0.5)
    image = tmp_path / "x.img"

    def slow(message):
        time.sleep(1)
        return node(message)

    with serving(slow) as (board, _):
        image.write_bytes(b"TBIM" + bytes(19 * 4096))
        assert run(capsys, "update", board, image)[0] == 0
        said = f"trebuchet: {board} sent nothing for %s s; {LOST}\n"
        assert run(capsys, "update", "--timeout", "0.3", board, image) == (1, "", said % "0.3")
        image.write_bytes(b"TBIM")
        assert run(capsys, "update", board, image) == (1, "", said % "0.7")


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (b"", "an image must have 1 to"),
        (b"junk", "x.img is no image; make one with: trebuchet image pack"),
    ],
)
def test_update_with_a_bad_image(capsys, tmp_path, contents, reason):
    image = tmp_path / "x.img"
    image.write_bytes(contents)
    with serving() as (board, _):
        code, out, err = run(capsys, "update", board, image)
    assert (code, out) == (1, "")
    assert reason in err
    assert len(err.splitlines()) == 1
    code, _, err = run(capsys, "update", board, tmp_path / "none.img")
    assert code == 1
    assert err.endswith("none.img: No such file or directory; is the path right?\n")


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("/dev/zero", "/dev/zero must have at most 67108864 bytes; it has more"),
        ("/nowhere", "cannot read /nowhere: No such file or directory; is the path right?"),
    ],
)
def test_update_with_what_is_no_image(capsys, image, message):
    assert run(capsys, "update", "x", image) == (1, "", f"trebuchet: {message}\n")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (None, "closed the connection with 1 message unanswered"),
        (b"HTTP/1.1 400 Bad Request\r\n", "an SMP message type must be 1 to 6, not 72"),
        (smp.response_message(Status.BUSY, 0), "refused the command message: BUSY: "),
        (smp.response_message(Status.OK, 0), "refused the command message: OK: "),
        (smp.data_message(1, b""), "answered with a DATA message"),
        (smp.data_message(2, b""), "answered message 2, which is not under way"),
        (
            smp.Message(smp.MessageType.REPLY, b"\0\0\0"),
            "a reply must have at least 4 bytes, not 3",
        ),
        (bytes((6, 0, 0, 0, 255, 255, 255, 0)), "an SMP payload must be at most 65540 bytes"),
    ],
)
def test_answers_that_are_wrong(capsys, said, message):
    with serving(lambda _: said) as (board, _):
        code, out, err = run(capsys, "manage", board, "version")
    assert (code, out) == (1, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_board_that_is_not_there(capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    code, _, err = run(capsys, "manage", f"127.0.0.1:{port}", "version")
    assert code == 1
    assert err.startswith(f"trebuchet: cannot connect to 127.0.0.1:{port}: ")
    with serving(lambda _: b"") as (board, _):
        code, _, err = run(capsys, "manage", "--timeout", "0.2", board, "version")
    assert code == 1
    assert err == f"trebuchet: {board} sent nothing for 0.2 s; {LOST}\n"


def test_a_command_that_is_too_long():
    with serving() as (board, seen), open_board(board, 15) as opened:
        assert opened.ask("x" * MAX_LINE).status == Status.UNKNOWN_COMMAND
        with pytest.raises(TrebuchetError, match="at most 127 bytes, not 128$"):
            opened.ask("x" * (MAX_LINE + 1))
    assert len(seen) == 1


@pytest.mark.parametrize("board", ["192.0.2.2:", ":80", "a:b", "a:0", "a:65536", "::1", ""])
def test_bad_addresses(board):
    with pytest.raises(TrebuchetError, match=f"HOST or HOST:PORT, not '{board}'$"):
        split_address(board, 80)
    assert split_address("192.0.2.2", 80) == ("192.0.2.2", 80)
