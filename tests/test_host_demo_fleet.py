"""`trebuchet demo --boards`: a job server, users, and boards of Python with the golden model.

The nightly test runs the command with simulated boards.
"""

import contextlib
import re
import socket
import subprocess
import sys

import jobd_bench  # noqa: F401 - skips where the job server cannot be compiled
import pytest
from fake_board import FakeBoard
from rich.console import Console
from trebuchet.host.demo_fleet import Place, schedule_path, share_record, work_of_each
from trebuchet.host.schedule_plot import LoggedJob, read_job_log
from trebuchet.models.ecg import model
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.status import Status

COMMAND = [sys.executable, "-m", "trebuchet.host.cli"]


def ecg_role(ident, data):
    return Status.OK, model.classify_block(model.np.frombuffer(data, "<i2"))


class ThisMachine:
    """Has the face of a fleet's network."""

    def run(self, command, timeout, **options):
        options.setdefault("capture_output", True)
        return subprocess.run(command, timeout=timeout, text=True, check=False, **options)

    def popen(self, command, **options):
        return subprocess.Popen(command, **options)

    def socket(self):
        return socket.socket()


def share(tmp_path, users=3, minutes=1.5, **fake):
    """Boards that share a record: their fakes, the printed text, the second picture."""
    console = Console(record=True, width=120)
    picture = tmp_path / "made" / "ecg-schedule.svg"
    picture.parent.mkdir()
    with contextlib.ExitStack() as stack:
        fakes = []
        for number in range(2):
            options = fake if number == 1 else {}
            fakes.append(stack.enter_context(FakeBoard({"ecg": ecg_role}, **options)))
        places = [
            Place(f"board{k}", fake.address, f"127.0.0.1:{fake.management}")
            for k, fake in enumerate(fakes)
        ]
        options = ["--record", "synthetic", "--minutes", str(minutes)]
        share_record(ThisMachine(), places, users, options, picture, 60, console)
    return fakes, console.export_text(), picture


def test_boards_share_a_record_of_several_users(tmp_path, capfd):
    fakes, own, picture = share(tmp_path)
    tables = " ".join(capfd.readouterr().out.split())
    assert "equal to the golden model, byte for byte" in tables
    assert "confusion matrix" in tables
    jobs = read_job_log(picture.with_suffix(".csv"))
    assert f"{len(jobs)} transactions of 3 users; " in own
    assert len({job.user for job in jobs}) == 3
    assert sum(len(fake.jobs) for fake in fakes) == len(jobs)
    for number, fake in enumerate(fakes):
        assert fake.jobs, "every board has a part"
        assert re.search(rf"board{number} +{len(fake.jobs)} +0 +\d+%", own), own
    assert "board1" in picture.read_text()


def test_a_result_that_is_not_the_golden_models_fails(tmp_path, capfd):
    def spoil(connection, message, answer):
        return answer[:-1] + bytes([answer[-1] ^ 1]) if message == 1 else answer

    with pytest.raises(TrebuchetError, match="the demo failed"):
        share(tmp_path, tamper=spoil)
    assert "1 of" in (said := " ".join(capfd.readouterr().err.split()))
    assert "differ from the golden model" in said


@pytest.mark.parametrize(
    ("logged", "line"),
    [(4, "two counted 3 transactions, the job server 4"), (2, "two counted 3 .* job server 2")],
)
def test_jobs_that_only_one_side_counted_are_an_error(logged, line):
    places = [Place(name, f"{name}:4000", name) for name in ("one", "two")]
    jobs = [LoggedJob("one:4000", "user a", 0, 1, 2, "OK")]
    jobs += [LoggedJob("two:4000", "user a", 0, 1, 2, "OK")] * logged
    jobs += [LoggedJob("two:4000", "user a", 0, 1, 2, "ABORTED")]
    before = [{"ecg": {"jobs": 7, "cycles": 100}}] * 2
    after = [{"ecg": {"jobs": 7 + done, "cycles": 200}} for done in (1, 3)]
    with pytest.raises(TrebuchetError, match=f"^{line}: jobs were lost, or done twice$"):
        work_of_each(places, before, after, jobs)


def test_a_job_server_that_does_not_start_is_one_line(tmp_path):
    with FakeBoard({"ecg": ecg_role}) as fake:
        place = Place("x", "nowhere:0", f"127.0.0.1:{fake.management}")
        with pytest.raises(
            TrebuchetError, match=r"^the job server did not start: trebuchet: --node"
        ):
            share_record(ThisMachine(), [place], 1, [], tmp_path / "x.svg", 60, Console(quiet=True))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--users", "2"], "--users is for several boards; give --boards N, 2 to 8, too"),
        (["--boards", "2", "--plot", "x.gif"], "the picture must be a .png, .svg or .pdf file"),
    ],
)
def test_wrong_options_are_one_line(options, line):
    done = subprocess.run([*COMMAND, "demo", *options], capture_output=True, text=True, check=False)
    assert done.returncode
    assert done.stderr.startswith(f"trebuchet: {line}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("count", ["0", "1", "9", "many"])
def test_a_wrong_number_of_boards_is_refused(count):
    command = [*COMMAND, "demo", "--boards", count]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'--boards'" in done.stderr


def test_the_second_picture_lies_beside_the_first(tmp_path):
    assert schedule_path(tmp_path / "ecg.svg") == tmp_path / "ecg-schedule.svg"


@pytest.mark.nightly
@pytest.mark.cpu_limit(1500)
def test_simulated_boards_share_a_record(tmp_path):
    picture = tmp_path / "ecg.png"
    words = ["demo", "--boards", "4", "--minutes", "3", "--record", "synthetic"]
    done = subprocess.run(
        [*COMMAND, *words, "--plot", picture], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "byte for byte" in text
    found = re.search(r"(\d+) transactions of 3 users", text)
    assert found, text
    shares = [int(number) for number in re.findall(r"board\d (\d+) [\d,]+ \d+%", text)]
    assert sum(shares) == int(found[1])
    assert min(shares) > 0, shares
    for path in (picture, schedule_path(picture)):
        assert path.read_bytes().startswith(b"\x89PNG")
