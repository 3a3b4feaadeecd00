"""`trebuchet sessions` with a board that the test plays."""

import json
from types import SimpleNamespace

import pytest
from trebuchet.client.dispatch import Member
from trebuchet.client.errors import describe_status
from trebuchet.client.management import Management
from trebuchet.host import sessions as command
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.status import Status

HEADING = "session state peer port unacknowledged unread snd.una rcv.nxt rto snd.nxt peer-window "
HEADING += "window rtt cwnd queue"


class Board:
    """In the place of a board that was opened: ``replies`` by command."""

    def __init__(self, replies):
        self.replies = replies

    def __call__(self, board, timeout):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def said(self, line):
        return self.replies[line]

    def sessions(self, *where):
        """What the library's call returns; no connection is needed for that."""
        ours = SimpleNamespace(_member=Member("10.0.0.2", {}, None))
        call = Management.sessions.function(ours, *where)
        try:
            batch = next(call)
            while True:
                status, *lines = self.said(batch.operands[0].decode())
                text = "".join(f"{line}\n" for line in lines)
                batch = call.send([bytes((status, 0, 0, 0)) + text.encode()])
        except StopIteration as end:
            return end.value


def row(session, state="ESTABLISHED"):
    return f"{session} {state} 10.0.0.9:40000 7 1 2 3 4 5 6 7 8 9 10 11"


@pytest.fixture
def board(monkeypatch):
    def plays(**replies):
        replies = {f"sessions {key[1:]}": reply for key, reply in replies.items()}
        monkeypatch.setattr(command, "open_board", Board(replies))

    return plays


def test_a_list_goes_on_until_the_board_has_no_more(board, capsys):
    board(
        _0=(Status.OK, HEADING, row(1), row(3, "TIME-WAIT"), "more: sessions 1024"),
        _1024=(Status.OK, HEADING, "more: sessions 2048"),
        _2048=(Status.OK, HEADING, row(2050)),
    )
    command.sessions("10.0.0.2", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert [entry["session"] for entry in found] == [1, 3, 2050]
    assert found[1] == {
        "session": 3, "state": "TIME-WAIT", "peer": "10.0.0.9:40000", "port": 7,
        "unacknowledged": 1, "unread": 2, "snd.una": 3, "rcv.nxt": 4, "rto": 5, "snd.nxt": 6,
        "peer-window": 7, "window": 8, "rtt": 9, "cwnd": 10, "queue": 11,
    }  # fmt: skip


def test_pages_of_a_long_list(board, capsys):
    """No command is sent for what is not shown."""
    board(
        _7=(Status.OK, HEADING, row(9), row(10), "more: sessions 11"),
        _11=(Status.OK, HEADING, row(12), row(15), "more: sessions 16"),
    )
    rows = command.fetch_sessions("10.0.0.2", start=7, limit=3)
    assert [entry["session"] for entry in rows] == [9, 10, 12]
    command.sessions("10.0.0.2", start=7, limit=2)
    *_, last, more = capsys.readouterr().out.splitlines()
    assert last.split()[0] == "10"
    assert more == "go on with: trebuchet sessions 10.0.0.2 --from 11"
    command.sessions("10.0.0.2", start=7, limit=2, as_json=True)
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_a_page_begins_where_it_is_to(board):
    board(_7=(Status.OK, HEADING, row(6)))
    with pytest.raises(
        TrebuchetError, match=r"^10.0.0.2 told of session 6; the next one must be fr"
    ):
        command.fetch_sessions("10.0.0.2", start=7)


def test_a_table_has_the_names_of_the_rfc(board, capsys):
    board(_0=(Status.OK, HEADING, row(1)))
    command.sessions("10.0.0.2")
    heading, line = capsys.readouterr().out.splitlines()
    assert {"SND.UNA", "SND.NXT", "RCV.NXT", "SND.WND", "RCV.WND"} <= set(heading.split())
    assert line.split()[:3] == ["1", "ESTABLISHED", "10.0.0.9:40000"]


def test_no_session_is_said(board, capsys):
    board(_0=(Status.OK, HEADING))
    command.sessions("10.0.0.2")
    assert capsys.readouterr().out == "no session\n"


def test_a_list_has_the_same_columns_throughout(board):
    board(
        _0=(Status.OK, HEADING, row(1), "more: sessions 2"),
        _2=(Status.OK, "session state peer", "2 ESTABLISHED 10.0.0.9:40000"),
    )
    with pytest.raises(TrebuchetError, match="10.0.0.2 changed the columns of its list of sess"):
        command.fetch_sessions("10.0.0.2")


def test_a_list_ends(monkeypatch):
    """A board that always has more sessions comes to a number that no board has."""

    class Endless(Board):
        def said(self, line):
            start = int(line.split()[1])
            asked.append(start)
            return Status.OK, HEADING, row(start), f"more: sessions {2 * start + 1}"

    asked = []
    monkeypatch.setattr(command, "open_board", Endless({}))
    with pytest.raises(TrebuchetError, match="^10.0.0.2 goes on with session 262143 after 131071$"):
        command.fetch_sessions("10.0.0.2")
    assert len(asked) == 18


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            (Status.NOT_BUILT_IN,),
            "10.0.0.2 cannot tell its sessions: build it with `inspect=True` in its board file",
        ),
        ((Status.BAD_ARGUMENT,), f"10.0.0.2 answered {describe_status(Status.BAD_ARGUMENT)}"),
        ((Status.OK, "hello"), "10.0.0.2 did not answer with a list of sessions"),
        ((Status.OK,), "10.0.0.2 did not answer with a list of sessions"),
        (
            (Status.OK, HEADING, "1 ESTABLISHED"),
            "10.0.0.2 told of a session in 2 words: '1 ESTABLISHED'",
        ),
        (
            (Status.OK, HEADING, "more: sessions 5", row(6)),
            "10.0.0.2 told of a session in 3 words: 'more: sessions 5'",
        ),
        ((Status.OK, HEADING, "more: sessions 0"), "10.0.0.2 goes on with session 0 after 0"),
        ((Status.OK, HEADING, "more: sessions x"), "10.0.0.2 goes on with session x after 0"),
        (
            (Status.OK, HEADING, f"more: sessions {'9' * 5000}"),
            "10.0.0.2 told of a session with a number of 5000 digits",
        ),
        (
            (Status.OK, HEADING, row("9" * 5000)),
            "10.0.0.2 told of a session with a number of 5000 digits",
        ),
        (
            (Status.OK, HEADING, row(7), row(7)),
            "10.0.0.2 told of session 7; the next one must be from 8 to 131071",
        ),
        (
            (Status.OK, HEADING, row("x")),
            "10.0.0.2 told of session x; the next one must be from 0 to 131071",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(board, reply, message):
    board(_0=reply)
    with pytest.raises(TrebuchetError) as error:
        command.fetch_sessions("10.0.0.2")
    assert str(error.value) == message
