"""The examples: docs/client.md, the tour, and the minimal clients in other languages."""

import contextlib
import io
import re
import runpy

import pytest
from fake_board import HOST, FakeBoard, closed_port, echo
from fake_registers import BASE, RegisterBoard
from minimal_clients import FOLDER, MADE, make_client, run_client
from trebuchet import __version__
from trebuchet.client import aio, blocking, owner
from trebuchet.models import matmul, register_map, roles
from trebuchet.models.ecg import model
from trebuchet.models.ecg import record as record_model
from trebuchet.models.status import Status

#: What the command `version` answers on a simulated board.
VERSION = f"Trebuchet {__version__} on sim, VexRiscv_Min at 1000000 Hz\n"


def upside_down(ident, data):
    return (Status.OK, data[::-1]) if data != b"bad" else (Status.BAD_DATA, b"")


@pytest.fixture(scope="module", params=MADE)
def command(root, request, tmp_path_factory):
    """The words that start a minimal client."""
    return make_client(root, request.param, tmp_path_factory.mktemp("client"))


def run(command, port, text):
    return run_client(command, HOST, port, text)


@pytest.mark.parametrize("text", ["", "x", "a heart beat", "%s\\n \u00e9", "long " * 4000])
def test_a_minimal_client_gets_the_result(command, text):
    with FakeBoard({"reverse": upside_down}) as fake:
        done = run(command, fake.port, text)
    assert (done.returncode, done.stdout, done.stderr) == (0, text.encode()[::-1], b"")


def test_a_minimal_client_says_what_is_wrong(command):
    with FakeBoard({"reverse": upside_down}) as fake:
        done = run(command, fake.port, "bad")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.endswith(f"refused with status {Status.BAD_DATA:d}\n".encode())
    nobody = run(command, closed_port(), "x")
    assert (nobody.returncode, nobody.stdout) == (1, b"")
    assert nobody.stderr


@pytest.mark.parametrize("name", MADE)
def test_minimal_clients_are_short(root, name):
    assert 20 <= len((root / FOLDER / name).read_text().splitlines()) <= 65


def matmul_role(ident, data):
    return (Status.BAD_LENGTH, b"") if len(data) % (1 << 15) else (Status.OK, matmul.result(data))


class EcgRole:
    """The golden model, of one connection's record."""

    def __init__(self):
        self.stream = record_model.RecordStream()

    def __call__(self, ident, data):
        samples = model.np.frombuffer(data, "<i2")
        return Status.OK, self.stream.block(samples) if len(samples) else self.stream.end()


class SimulatedBoard(RegisterBoard):
    """It says of itself what a simulated board says."""

    def state(self):
        return super().state() | {"board": "sim", "start": "power"}


def adler_role(ident, data):
    return roles.adler(data, 4)


@pytest.fixture
def boards(monkeypatch, tmp_path):
    """Fakes at the addresses that the documents use; the folder of builds has their registers."""
    monkeypatch.setattr(register_map, "BUILD", tmp_path)
    (tmp_path / "fake").mkdir()
    with contextlib.ExitStack() as stack:
        fakes = {
            address: stack.enter_context(
                SimulatedBoard(
                    tmp_path / "fake",
                    {
                        "ecg": EcgRole(),
                        "matmul": matmul_role,
                        "verilog_example": adler_role,
                        "loopback": echo,
                    },
                    commands={"version": (Status.OK, VERSION), "log": (Status.OK, "")},
                )
            )
            for address in ("192.0.2.2", "192.0.2.3")
        }
        for fake in fakes.values():
            fake.registers.words |= {BASE: 1, BASE + 4: 200, BASE + 8: 1000}
        make = owner.make_member

        def make_fake(address, **options):
            fake = fakes[address]
            return make(fake.address, **options | {"management": fake.management})

        monkeypatch.setattr(blocking, "make_member", make_fake)
        monkeypatch.setattr(aio, "make_member", make_fake)
        yield fakes


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize(
    ("document", "least"),
    [("docs/client.md", 6), ("docs/tutorials/python.md", 5), ("docs/smp.md", 1)],
)
def test_examples_of_the_document_are_true(root, boards, document, least):
    """What they print is what the comments of their print() say."""
    space = {"__name__": "example"}
    found = blocks((root / document).read_text())
    assert len(found) >= least
    for block in found:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(block, document, "exec"), space)
        expected = re.findall(r"print\(.*\)  # (.*)$", block, re.M)
        assert said.getvalue().splitlines() == expected, block


def test_the_tour_runs(root, boards, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["tour.py", "192.0.2.2"])
    runpy.run_path(str(root / "examples" / "tour.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "roles: ecg, matmul, verilog_example, loopback" in said
    assert re.search(r"^[0-9]+ beats: .*N", said, re.M)
