"""Which roles a board has, as clients see it, and messages to one by its name."""

import pytest
from trebuchet.host import roles, smp
from trebuchet.host.exchange import Refused
from trebuchet.models.errors import TrebuchetError
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
def board(monkeypatch):
    monkeypatch.setattr(roles, "fetch_status", lambda board, timeout: STATE)


def test_roles_of_a_status():
    assert roles.roles_of(STATE) == ["heart", "wire", "matmul"]
    assert roles.roles_of({"board": "sim"}) == roles.roles_of({"engines": 3}) == []


def test_a_role_by_its_name(board):
    assert [roles.role_number("b", name, 1) for name in (None, "heart", "matmul")] == [None, 0, 2]
    with pytest.raises(
        TrebuchetError, match="^b has no role 'ecg'; its roles are: heart, wire, matmul$"
    ):
        roles.role_number("b", "ecg", 1)


def test_a_refusal_names_the_roles(board, monkeypatch):
    refusal = Refused("b refused message 0: NO_ROLE: nobody", Status.NO_ROLE)
    assert str(roles.explain("b", refusal, 1)).endswith("; its roles are: heart, wire, matmul")
    other = Refused("b refused message 0: STOPPED", Status.STOPPED)
    assert roles.explain("b", other, 1) is other

    def silent(board, timeout):
        raise TrebuchetError("cannot connect")

    monkeypatch.setattr(roles, "fetch_status", silent)
    assert roles.explain("b", refusal, 1) is refusal


@pytest.mark.parametrize("role", [None, 0, 3, 15])
def test_a_message_is_the_models(role):
    assert smp.data_message(7, b"abc", role=role).pack() == data_message(7, b"abc", role=role)


def test_a_role_has_a_number():
    with pytest.raises(ValueError, match="^role must be 0 to 15, not 16$"):
        smp.data_message(1, b"", role=16)
