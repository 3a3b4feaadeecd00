"""The measurements of the job server, in short: every figure is there, and is one."""

import pytest
from jobd_bench import build
from trebuchet.bench import jobs
from trebuchet.bench.registry import GROUPS


@pytest.mark.slow
def test_a_short_measurement_has_every_figure(monkeypatch):
    assert build(jobs.LOAD).exists()
    monkeypatch.setattr(jobs, "PAIRS", 1)
    monkeypatch.setattr(jobs, "SECONDS", 0.1)
    values = jobs._measure(1)
    assert values.keys() == set(GROUPS["jobs"].figures)
    assert all(values[name] > 0 for name in values if "latency" not in name), values
    assert 0.5 < values["jobs.linear_44"] < 2
    assert values["jobs.fairness_64"] <= 1
