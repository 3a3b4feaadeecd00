"""The job server's log of jobs: a line for each, with its times."""

import os
import subprocess

import pytest
from jobd_bench import build, serving
from trebuchet.client import smp
from trebuchet.host.schedule_plot import read_job_log
from trebuchet.models.status import Status

#: Of 2 ms.
CYCLES = ("--cycles", 100_000, "--segment", 1000)


def test_each_job_has_a_line(tmp_path):
    """Bars of a node do not overlap, and each is as long as the board worked, at least."""
    path = tmp_path / "jobs.csv"
    options = ("--job-log", path, "--threads", 2)
    with serving(*options, boards=2, node_options=CYCLES, configured=True) as server:
        server.wait_for_nodes(4)
        with server.user() as one, server.user() as two:
            for user in (one, two):
                for ident in range(20):
                    user.send(smp.data_message(ident, bytes(16)))
            for user in (one, two):
                assert len(user.results(20)) == 20
            assert two.exchange({7: bytes(2000)}) == {7: Status.TOO_LARGE}
        answered = server.idle()["jobs_answered_total"]
        jobs = read_job_log(path)
        assert len(jobs) == answered == 41
    assert len({job.user for job in jobs}) == 2
    assert [job.outcome for job in jobs].count("TOO_LARGE") == 1
    for job in jobs:
        assert job.arrived <= job.ended
        assert job.started < job.ended
    # Each thread has its own connection to a node, so a node has as many bars at a time.
    for node in {job.node for job in jobs}:
        mine = [job for job in jobs if job.node == node and job.outcome == "OK"]
        length = max(job.ended for job in mine) - min(job.started for job in mine)
        assert sum(job.ended - job.started for job in mine) <= 2 * length + 1e-5 * len(mine)


def test_an_aborted_job_has_a_line(tmp_path):
    path = tmp_path / "jobs.csv"
    options = ("--job-log", path, "--patience-ms", 100)
    cycles = ("--cycles", (1 << 32) - 1)
    with serving(*options, boards=1, node_options=cycles, configured=True) as server:
        server.wait_for_nodes(1)
        with server.user() as user:
            assert user.exchange({7: b"x"}) == {7: Status.ABORTED}
        server.idle()
    (job,) = read_job_log(path)
    assert (job.outcome, job.user.split()[0]) == ("ABORTED", "user")
    assert job.ended - job.started >= 0.1


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/nowhere/jobs", "No such file or directory"), ("/dev/full", "No space left on device")],
)
def test_a_log_that_cannot_be_written_is_one_line(path, reason):
    command = [build("trebuchet-jobd"), "--user-port", "0", "--node-port", "0", "--job-log", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    line = f"jobd: cannot write {path}: {reason}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


def test_a_log_that_can_be_written_no_more_stops_no_job(tmp_path):
    """As on a full disk: one line, and the jobs go on. Here the reader of a pipe goes away."""
    path = tmp_path / "jobs"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with serving("--job-log", path, boards=1, configured=True) as server:
        server.wait_for_nodes(1)
        with server.user() as user:
            jobs = {ident: bytes(20) for ident in range(30)}
            assert user.exchange(jobs) == jobs
            os.close(reader)
            assert user.exchange(jobs) == jobs
        server.idle()
        assert server.lines == ["jobd: job log: cannot be written any more"]
