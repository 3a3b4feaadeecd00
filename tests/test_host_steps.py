"""Lines of progress, on a terminal and elsewhere."""

import io
import re

import pytest
from trebuchet.models import steps
from trebuchet.models.steps import Step


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_lines_where_there_is_no_terminal():
    out = io.StringIO()
    with Step("compiling", 30, lambda: (3, 7), out=out):
        pass
    assert out.getvalue() == ("compiling: file 3 of 7, 0 s of about 30 s\ncompiling: done in 0 s\n")


def test_one_line_on_a_terminal():
    out = Terminal()
    with Step("installing", 5, lambda: None, "package", out=out):
        pass
    assert out.getvalue() == (
        "\r\033[Kinstalling: 0 s of about 5 s\r\033[Kinstalling: done in 0 s\n"
    )


def test_there_is_a_line_from_time_to_time(monkeypatch):
    monkeypatch.setattr(steps, "QUIET", 0.001)
    out, counts = io.StringIO(), iter(range(10**6))
    step = Step("compiling", 30, lambda: (next(counts), 9), out=out)
    with step:
        while out.getvalue().count("\n") < 3:
            step.ended.wait(0.001)
    numbers = [int(n) for n in re.findall(r"file (\d+) of 9", out.getvalue())]
    assert numbers == sorted(numbers)
    assert len(numbers) >= 3


def test_a_step_that_fails_says_so():
    out = io.StringIO()
    with pytest.raises(KeyError), Step("compiling", 30, out=out):
        raise KeyError
    assert out.getvalue().endswith("compiling: stopped after 0 s\n")


def test_a_late_step_leaves_nothing_if_it_was_quick():
    out, terminal = io.StringIO(), Terminal()
    with Step("compiling", 30, out=out, late=True), Step("making", 3, out=terminal, late=True):
        pass
    assert out.getvalue() == ""
    assert terminal.getvalue() == "\r\033[Kmaking: 0 s of about 3 s\r\033[K"


def test_a_late_step_that_lasts_writes_lines(monkeypatch):
    monkeypatch.setattr(steps, "QUIET", 0.001)
    out = io.StringIO()
    step = Step("compiling", 30, out=out, late=True)
    with step:
        while not out.getvalue():
            step.ended.wait(0.001)
    assert out.getvalue().endswith("compiling: done in 0 s\n")
