"""Which roles a board has, as clients see it, and messages to one by its name."""

import pytest
from trebuchet.client import Board, BoardError, smp
from trebuchet.client.errors import ConnectionLost, ProtocolError, refusal
from trebuchet.client.status import roles_of
from trebuchet.host.roles import explained
from trebuchet.models.smp_framing import data_message
from trebuchet.models.status import Status

SLOT = {"jobs": 1, "errors": 0, "cycles": 7, "hangs": 0}
STATE = {
    "board": "sim",
    "engines": {
        "tcp": {"segments": 3, "errors": 1},
        "heart": SLOT | {"blocks": 3},
        "wire_0": SLOT,
        "wire_1": SLOT,
        "matmul": SLOT,
    },
}


@pytest.fixture
def board():
    """One that need not be asked for its roles."""
    return Board("192.0.2.9", roles=roles_of(STATE))


def test_roles_of_a_status():
    assert roles_of(STATE) == ["heart", "wire", "matmul"]
    assert roles_of({"board": "sim"}) == roles_of({"engines": 3}) == []


def test_a_role_that_is_not_there_is_named(board):
    with pytest.raises(BoardError, match="^192.0.2.9 has no role 'ecg'; its roles are: heart, wi"):
        board.role("ecg").call(b"")


def told(board, error, role, kind):
    with pytest.raises(type(error)) as caught, explained(board, role, kind):
        raise error
    assert caught.value is error
    return str(error)


THERE = "; its roles are: heart, wire, matmul"


@pytest.mark.parametrize(
    ("status", "role", "kind", "end"),
    [
        (Status.NO_ROLE, None, "ecg", f"{THERE}; this command needs ecg"),
        (Status.NO_ROLE, "heart", "matmul", THERE),
        (Status.TOO_LARGE, None, "ecg", f"{THERE}; this command needs ecg"),
        (Status.BAD_LENGTH, None, "matmul", f"{THERE}; choose one with --role matmul"),
        (Status.TOO_LARGE, None, "heart", "send smaller messages"),
        (Status.TOO_LARGE, "heart", "ecg", "send smaller messages"),
    ],
)
def test_a_refusal_names_the_roles(board, status, role, kind, end):
    assert told(board, refusal(status, "b refused message 1"), role, kind).endswith(end)


def test_what_no_role_explains_stays_as_it_is(board):
    assert told(board, ProtocolError("b sent 17 bytes"), None, "ecg").endswith("needs ecg")
    assert told(board, ConnectionLost("b sent nothing"), None, "ecg") == "b sent nothing"
    nobody = Board("127.0.0.1", management=1)
    assert told(nobody, ProtocolError("b sent 17 bytes"), None, "ecg") == "b sent 17 bytes"


@pytest.mark.parametrize("role", [None, 0, 3, 15])
def test_a_message_is_the_models(role):
    assert smp.data_message(7, b"abc", role=role).pack() == data_message(7, b"abc", role=role)


def test_a_role_has_a_number():
    with pytest.raises(ValueError, match="^role must be 0 to 15, not 16$"):
        smp.data_message(1, b"", role=16)
