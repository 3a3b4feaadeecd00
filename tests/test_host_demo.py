"""The demo's orchestration against a board made of Python: the golden model behind a TCP port.

The demo itself is run by tests/test_host_make_demo.py.
"""

import json
import re
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from types import SimpleNamespace

import pytest
from rich.console import Console
from trebuchet.client.smp import Decoder, MessageType, data_message, parse_data
from trebuchet.host import demo as module
from trebuchet.host.demo import cycles_per_transaction, show
from trebuchet.models.ecg import model
from trebuchet.models.ecg.record import RecordStream
from trebuchet.models.errors import TrebuchetError

CYCLES = 9000


class Role:
    """The ECG role in Python; ``fault`` spoils one answer."""

    def __init__(self, fault=False):
        self.jobs, self.fault = 0, fault
        role = self

        class Smp(BaseRequestHandler):
            def handle(self):
                decoder, stream = Decoder(), RecordStream()
                while data := self.request.recv(1 << 16):
                    for message in decoder.feed(data):
                        self.request.sendall(role.answer(message, stream).pack())

        class Status(BaseHTTPRequestHandler):
            def do_GET(self):
                counters = {"jobs": role.jobs, "errors": 0, "cycles": role.jobs * CYCLES}
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps({"engines": {"tcp": {}, "ecg": counters}}).encode())

            def log_message(self, *args):
                pass

        self.servers = (
            ThreadingTCPServer(("127.0.0.1", 0), Smp),
            ThreadingHTTPServer(("127.0.0.1", 0), Status),
        )

    def answer(self, message, stream):
        id, payload = parse_data(message.payload)
        samples = model.np.frombuffer(payload, "<i2")
        if message.kind == MessageType.DATA:
            result = bytearray(model.classify_block(samples))
        else:
            result = bytearray(stream.block(samples) if payload else stream.end())
        self.jobs += 1
        if self.fault and self.jobs == 2:
            result[3] ^= 1
        return data_message(id, bytes(result))


class PythonBoard:
    """Has the face of `trebuchet.sim.run.Board`; its network is this machine's."""

    ip = "127.0.0.1"

    def run(self, command, timeout, **options):
        options.setdefault("capture_output", True)
        return subprocess.run(command, timeout=timeout, text=True, check=False, **options)


@contextmanager
def running(role):
    threads = [threading.Thread(target=s.serve_forever, daemon=True) for s in role.servers]
    for thread in threads:
        thread.start()
    try:
        yield [server.server_address[1] for server in role.servers]
    finally:
        for server in role.servers:
            server.shutdown()
            server.server_close()


def demonstrate(role, picture):
    with running(role) as (port, status_port):
        options = ["--record", "synthetic", "--minutes", "1", "--plot", str(picture)]
        console = Console(record=True, width=120)
        show(
            PythonBoard(),
            [*options, "--port", str(port)],
            60,
            console,
            status_address=f"127.0.0.1:{status_port}",
        )
        return console.export_text()


def test_prints_tables_cycles_and_time_and_draws(tmp_path, capfd):
    picture = tmp_path / "ecg.png"
    own = demonstrate(Role(), picture)
    tables = capfd.readouterr().out
    assert "byte for byte" in tables
    assert "beats per class" in tables
    assert "confusion matrix" in tables
    assert re.search(r"\d+ transactions, 9,000 clock cycles each in the role; [\d.]+ s", own)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_an_answer_that_is_not_the_golden_models_fails(tmp_path, capfd):
    with pytest.raises(TrebuchetError, match="the demo failed"):
        demonstrate(Role(fault=True), tmp_path / "ecg.png")
    assert "differ from the golden model" in capfd.readouterr().err.replace("\n", " ")


def test_a_board_that_serves_no_status_is_named(tmp_path):
    with pytest.raises(TrebuchetError, match=r"cannot connect to 127\.0\.0\.1:1: .*refused"):
        show(PythonBoard(), [], 10, Console(), status_address="127.0.0.1:1")


@pytest.mark.parametrize(
    ("slow", "message"),
    [
        ("run", "the demo was not done after 0.1 s; give it more with --timeout, or a shorter"),
        ("status", "board gave no status within 120 s"),
    ],
)
def test_time_that_runs_out_is_one_line(slow, message):
    class Board:
        ip = "board"

        def run(self, command, timeout, **_):
            if slow in command:
                raise subprocess.TimeoutExpired(command, timeout)
            return subprocess.CompletedProcess(command, 0, json.dumps({"engines": {}}), "")

    with pytest.raises(TrebuchetError, match=f"^{message}"):
        show(Board(), [], 0.1, Console())


@pytest.mark.parametrize("picture", ["x.foo", "/proc/x.png"])
def test_a_picture_that_cannot_be_is_known_before_the_board_is_made(monkeypatch, picture):
    monkeypatch.setattr(module, "simulated_board", lambda _: pytest.fail("it was made"))
    with pytest.raises(TrebuchetError, match="the picture must be|cannot write /proc: "):
        module.demo(plot=Path(picture))


def test_cycles_per_transaction_counts_across_a_wrap():
    before = {"ecg": {"jobs": (1 << 32) - 1, "cycles": (1 << 32) - 1000}}
    after = {"ecg": {"jobs": 1, "cycles": 1000}}
    assert cycles_per_transaction(before, after) == (2, 1000.0)


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ({"ecg": {"jobs": 5, "cycles": 7}}, "its role counted no transaction"),
        ({"tcp": {}}, "the board has no role 'ecg'; it has: tcp"),
    ],
)
def test_counters_that_make_no_sense(after, message):
    with pytest.raises(TrebuchetError, match=message):
        cycles_per_transaction({"ecg": {"jobs": 5, "cycles": 7}}, after)


def test_the_board_is_made_awaited_and_ended(monkeypatch, tmp_path, capsys):
    """The order of things, with a simulator of three functions."""
    log = []

    class Board(PythonBoard):
        def __init__(self, binary, cwd):
            log.append(f"start {binary} in {cwd}")

        def __enter__(self):
            return self

        def __exit__(self, *_):
            log.append("end")

        def wait_port(self, port):
            log.append(f"wait {port}")

    source = SimpleNamespace(folder="folder", ready_port=80)

    @contextmanager
    def making(part):
        log.append(f"make {part}")
        yield part

    prepare = SimpleNamespace(
        making=making,
        wait=lambda part: log.append(f"{part} is made"),
        generated=lambda began: None,
        compiled=lambda: None,
    )
    fakes = {
        "trebuchet.sim.prepare": prepare,
        "trebuchet.sim.tops": SimpleNamespace(source=lambda top: log.append(top) or source),
        "trebuchet.sim.build": SimpleNamespace(build=lambda made: "binary"),
        "trebuchet.sim.run": SimpleNamespace(Board=Board),
    }
    monkeypatch.setattr(module.importlib, "import_module", fakes.__getitem__)
    monkeypatch.setattr(module, "show", lambda _, options, *__: log.append(options[-2:]))
    module.demo(record="synthetic", plot=tmp_path / "ecg.png")
    assert log[:5] == ["make common", "make board", "board is made", "board", "common is made"]
    start = ["start binary in folder", "wait 80", ["--record", "synthetic"], "end"]
    assert log[5:] == start
    printed = capsys.readouterr()
    assert printed.out.startswith("record synthetic: synthetic, generated by this program")
    steps = [line.partition(":")[0] for line in printed.err.splitlines()]
    assert list(dict.fromkeys(steps)) == [
        "generating the board's Verilog and firmware",
        "compiling the simulated board",
        "starting the board",
    ]
