"""The job server's log of jobs, read and drawn as a Gantt chart."""

import xml.etree.ElementTree as ElementTree

import pytest
from trebuchet.host.schedule_plot import LoggedJob, busy_share, draw_schedule, read_job_log
from trebuchet.models.errors import TrebuchetError

HEAD = "node,user,id,bytes,arrived_us,started_us,ended_us,outcome\n"
JOBS = [
    LoggedJob("10.0.0.2:4000", "user a:1", 0.0, 1.0, 2.0, "OK"),
    LoggedJob("10.0.0.3:4000", "user b:2", 0.5, 1.0, 4.0, "OK"),
    LoggedJob("10.0.0.2:4000", "user b:2", 1.0, 2.0, 3.0, "ABORTED"),
    LoggedJob("10.0.0.2:4000", "user a:1", 1.0, 3.0, 3.5, "OK"),
]
NAMES = {"10.0.0.2:4000": "left", "10.0.0.3:4000": "right", "10.0.0.4:4000": "idle"}


def write(folder, text):
    path = folder / "jobs.csv"
    path.write_text(text)
    return path


def test_a_log_is_read(tmp_path):
    text = f"{HEAD}h:1,user a:1,7,4104,1000,2000000,3500000,OK\n"
    (job,) = read_job_log(write(tmp_path, text))
    assert job == LoggedJob("h:1", "user a:1", 0.001, 2.0, 3.5, "OK")
    assert read_job_log(write(tmp_path, HEAD)) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "jobs.csv must begin with the columns node,user,id,bytes,arrived_us,started_us"),
        ("a,b\n", "jobs.csv must begin with the columns node,user,id"),
        (f"{HEAD}h,u,1,2,3\n", "jobs.csv, line 2: it must have 8 columns, times as whole micro"),
        (f"{HEAD}h,u,1,2,3,x,5,OK\n", "line 2: it must .* not 'h,u,1,2,3,x,5,OK'$"),
    ],
)
def test_what_is_no_log_is_one_line(tmp_path, text, line):
    with pytest.raises(TrebuchetError, match=line):
        read_job_log(write(tmp_path, text))


def test_a_log_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(TrebuchetError, match="^cannot read the log of jobs .*No such file"):
        read_job_log(tmp_path / "none.csv")


def test_the_share_of_the_time_with_a_job():
    assert busy_share(JOBS, "10.0.0.2:4000") == pytest.approx(2.5 / 3)
    assert busy_share(JOBS, "10.0.0.3:4000") == 1
    assert busy_share(JOBS[:1] * 2, "10.0.0.4:4000") == 0


def bars(monkeypatch, path):
    """Row, start, length, colour, hatch of each bar that is drawn."""
    from matplotlib.axes import Axes

    found, barh = [], Axes.barh

    def record(axes, rows, lengths, left, **options):
        made = barh(axes, rows, lengths, left=left, **options)
        found.append((rows, left, lengths, options["color"], made))
        return made

    monkeypatch.setattr(Axes, "barh", record)
    draw_schedule(JOBS, path, NAMES, "title")
    return [
        (row, start, length, colour, bar.get_hatch())
        for rows, left, lengths, colour, made in found
        for row, start, length, bar in zip(rows, left, lengths, made, strict=True)
    ]


def test_a_row_a_node_a_bar_a_job_a_colour_a_user(monkeypatch, tmp_path):
    path = tmp_path / "schedule.svg"
    drawn = bars(monkeypatch, path)
    first, second = drawn[0][3], drawn[2][3]
    assert first != second
    assert drawn == [
        (0, 0.0, 1.0, first, None),
        (0, 2.0, 0.5, first, None),
        (1, 0.0, 3.0, second, None),
        (0, 1.0, 1.0, second, "xxx"),
    ]
    assert ElementTree.parse(path).getroot().tag.endswith("svg")
    text = path.read_text()
    for label in ("left", "right", "idle", "3 jobs, 83% busy", "user 1: 2 jobs", "title"):
        assert f"<!-- {label}" in text, label


def test_a_png_and_a_log_without_jobs(tmp_path):
    path = tmp_path / "schedule.png"
    draw_schedule(JOBS, path, {})
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(TrebuchetError, match="^the log of jobs is empty"):
        draw_schedule([], path, {})
