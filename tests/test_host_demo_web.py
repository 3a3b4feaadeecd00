"""`trebuchet demo web`: pages of a simulated board for programs outside of its network."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from sim_tops import needs_network
from trebuchet.host import demo_web
from trebuchet.host.cli import main
from trebuchet.host.forward import Forwarder
from trebuchet.models.errors import TrebuchetError


class Echo:
    """Sends back what comes; ends when the peer does."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=self.listener.accept()[:1]).start()

    @staticmethod
    def serve(s):
        with s, contextlib.suppress(OSError):
            while data := s.recv(65536):
                s.sendall(data)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port))


@pytest.fixture
def echo():
    made = Echo()
    yield made
    made.listener.close()


def exchange(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
        sender.start()
        back = b""
        while part := s.recv(65536):
            back += part
        sender.join()
    return back


def test_every_byte_and_both_ends_are_passed_on(echo):
    blocks = [random.Random(k).randbytes(300_000 * k) for k in range(5)]
    with Forwarder(echo.connect) as forwarder:
        found = [None] * len(blocks)

        def client(k):
            found[k] = exchange(forwarder.port, blocks[k])

        clients = [threading.Thread(target=client, args=(k,)) for k in range(len(blocks))]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
    assert found == blocks


def test_a_board_that_refuses_is_a_connection_that_ends(echo):
    def refused():
        raise ConnectionRefusedError

    with Forwarder(refused) as forwarder:
        assert exchange(forwarder.port, b"") == b""


def test_closing_ends_all(echo):
    forwarder = Forwarder(echo.connect)
    s = socket.create_connection(("127.0.0.1", forwarder.port), timeout=60)
    s.sendall(b"x")
    assert s.recv(1) == b"x"
    forwarder.close()
    with contextlib.suppress(ConnectionError):
        assert s.recv(1) == b""
    s.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", forwarder.port), timeout=1)


def test_a_port_that_is_taken(echo):
    with pytest.raises(TrebuchetError, match=rf"^cannot listen on port {echo.port}: .*--port$"):
        Forwarder(echo.connect, echo.port)


def line(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["demo", *arguments])
    assert ended.value.code == 1
    return capsys.readouterr().err


def test_options_of_the_other_demo(capsys):
    assert "those of the ECG demo" in line(capsys, "web", "--record", "208")
    assert "trebuchet demo web" in line(capsys, "--port", "80")


def test_what_is_no_folder(capsys, tmp_path):
    said = line(capsys, "web", "--folder", str(tmp_path / "no"))
    assert f"{tmp_path / 'no'} is no folder" in said


def test_the_documentation_is_built_if_it_is_not_there(monkeypatch, tmp_path):
    asked = []

    def build(command, **_):
        asked.append(command[1:])
        (tmp_path / "index.html").write_text("<p>made</p>")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(demo_web, "SITE", tmp_path)
    monkeypatch.setattr(demo_web.subprocess, "run", build)
    assert demo_web.documentation() == tmp_path
    assert demo_web.documentation() == tmp_path
    assert asked == [["-m", "trebuchet.docs.site.build"]]


def test_documentation_that_cannot_be_built(monkeypatch, tmp_path):
    def build(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "No module named 'sphinx'\n")

    monkeypatch.setattr(demo_web, "SITE", tmp_path)
    monkeypatch.setattr(demo_web.subprocess, "run", build)
    with pytest.raises(TrebuchetError, match="was not built: No module named 'sphinx'; it needs"):
        demo_web.documentation()


@needs_network
@pytest.mark.slow
def test_the_command_serves_a_folder_until_it_is_interrupted(tmp_path):
    site = tmp_path / "site"
    (site / "sub").mkdir(parents=True)
    big = random.Random(1).randbytes(200_000)
    (site / "index.html").write_text("<p>front</p>")
    (site / "sub" / "big.bin").write_bytes(big)
    command = [sys.executable, "-m", "trebuchet.host.cli", "demo", "web", "--folder", str(site)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, process_group=0
    )
    try:
        address = None
        for said in child.stdout:
            words = said.split()
            if words[:1] == ["open"]:
                address = words[1]
                break
        assert address is not None
        with urllib.request.urlopen(address, timeout=600) as response:
            assert response.read() == b"<p>front</p>"
        with urllib.request.urlopen(f"{address}sub/big.bin", timeout=600) as response:
            assert response.read() == big
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address}nothing", timeout=600)
        time.sleep(0.2)
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does, to all of its processes
        rest = child.stdout.read()
        assert child.wait(timeout=120) == 0
        assert "3 requests answered in gateware, 1 of them with 404" in rest
    finally:
        child.kill()
        child.stdout.close()
        child.wait()
