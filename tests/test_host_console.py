"""`trebuchet console`: which port, commands and their answers, boards that fall silent."""

import os
import select
import socket
import threading
import tty

import pytest
from serial.tools import list_ports
from trebuchet.host import console
from trebuchet.host.cli import app
from trebuchet.host.console import PROMPT, SerialConsole
from trebuchet.models.errors import TrebuchetError
from typer.testing import CliRunner

ANSWERS = {"version": "Trebuchet\r\n", "peek": "error: BAD_ARGUMENT: the form is\r\n", "log": ""}


class Fake:
    """The far end of a port: echoes what is typed, as a board does, and answers whole lines."""

    def __init__(self, chatter=b"", silent=False):
        self.near, self.far = os.openpty()
        tty.setraw(self.far)
        self.port, self.silent, self.typed = os.ttyname(self.far), silent, []
        self.chatter = chatter  # said when the first byte comes: opening a port forgets what came
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        line = b""
        while True:
            try:
                byte = os.read(self.near, 1)
            except OSError:
                return
            if self.chatter:
                os.write(self.near, self.chatter)
                self.chatter = b""
            if self.silent:
                continue
            if byte == b"\x03":
                line = b""
                os.write(self.near, b"^C\r\n\x1b[K" + PROMPT.encode())
            elif byte == b"\r":
                self.typed.append(line.decode())
                os.write(self.near, b"\r\n" + ANSWERS[line.decode()].encode() + PROMPT.encode())
                line = b""
            else:
                line += byte
                os.write(self.near, byte)

    def close(self):
        os.close(self.far)
        os.close(self.near)


@pytest.fixture
def fake(request):
    made = Fake(**getattr(request, "param", {}))
    yield made
    made.close()


@pytest.mark.parametrize(
    "fake", [{}, {"chatter": b"[ 1.000] info ip: version\r\ntrebuchet> half a li"}], indirect=True
)
def test_commands_and_their_answers(fake):
    done = CliRunner().invoke(app, ["console", fake.port, "--exec", "version", "--exec", "log"])
    assert (done.exit_code, done.stdout) == (0, "Trebuchet\n")
    assert fake.typed == ["version", "log"]


def test_a_serial_port_that_a_server_gives_by_tcp(fake):
    """What the server does here: pass bytes between a connection and the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = threading.Thread(target=_pass_on, args=(listener, fake.port), daemon=True)
        served.start()
        port = f"socket://127.0.0.1:{listener.getsockname()[1]}"
        done = CliRunner().invoke(app, ["console", port, "--exec", "version"])
        served.join(60)
    assert (done.exit_code, done.stdout) == (0, "Trebuchet\n")
    assert not served.is_alive()


def _pass_on(listener, name):
    near, _ = listener.accept()
    with near, open(name, "r+b", buffering=0) as far:
        while True:
            for source in select.select([near, far], [], [])[0]:
                if source is far:
                    near.sendall(os.read(far.fileno(), 4096))
                elif data := near.recv(4096):
                    far.write(data)
                else:
                    return


def test_an_error_of_the_board_ends_the_command(fake):
    done = CliRunner().invoke(app, ["console", fake.port, "--exec", "peek", "--exec", "version"])
    assert str(done.exception) == "peek: BAD_ARGUMENT: the form is"
    assert fake.typed == ["peek"]


@pytest.mark.parametrize(
    ("fake", "heard"),
    [
        ({"silent": True}, ", nothing at all; is it this port"),
        ({"silent": True, "chatter": b"boot\r\nmemory\r\n"}, "; its last line: 'memory'; is it"),
    ],
    indirect=["fake"],
)
def test_a_silent_board(fake, heard):
    with SerialConsole(fake.port, timeout=0.3) as found:
        with pytest.raises(TrebuchetError) as caught:
            found.run("version")
    assert str(caught.value).startswith(f"the board on {fake.port} said no more for 0.3 s{heard}")


def test_a_port_that_goes_away():
    near, far = os.openpty()
    with SerialConsole(os.ttyname(far), timeout=600) as found:
        os.close(far)
        os.close(near)
        with pytest.raises(TrebuchetError, match="has gone"):
            found.until("x")


def test_without_a_terminal_commands_must_be_named(fake):
    done = CliRunner().invoke(app, ["console", fake.port])
    assert str(done.exception).startswith("the console needs a terminal; name commands with --exec")


def test_no_such_port(tmp_path):
    done = CliRunner().invoke(app, ["console", str(tmp_path / "tty"), "--exec", "log"])
    assert str(done.exception).startswith(f"cannot open serial port {tmp_path / 'tty'}: ")


class Port:
    def __init__(self, device, vid):
        self.device, self.description, self.vid = device, f"about {device}", vid


@pytest.mark.parametrize(
    ("ports", "outcome"),
    [
        ([Port("/dev/ttyS0", None), Port("/dev/ttyUSB3", 0x403)], "/dev/ttyUSB3"),
        ([Port("/dev/ttyS0", None)], "no serial port is on USB; is the board plugged in, and may"),
        (
            [Port("/dev/a", 1), Port("/dev/b", 1)],
            "there are several serial ports; name the board's: /dev/a (about /dev/a), /dev/b (abou",
        ),
    ],
)
def test_the_only_port_on_usb_is_taken(monkeypatch, ports, outcome):
    monkeypatch.setattr(list_ports, "comports", lambda: ports)
    if outcome.startswith("/dev"):
        assert console._only_port() == outcome
        return
    with pytest.raises(TrebuchetError) as caught:
        console._only_port()
    assert str(caught.value).startswith(outcome)
