"""The measurements of the job server, in short: every figure is there, and is one."""

import shutil

import pytest
from jobd_bench import build
from trebuchet.bench import jobs
from trebuchet.bench.registry import GROUPS
from trebuchet.host.measure import haproxy
from trebuchet.models.errors import TrebuchetError

#: Figures of which zero is a good value, or noise.
DIFFERENCES = ("latency_added", "stalled_effect")


def test_without_haproxy_its_package_is_named(monkeypatch):
    monkeypatch.setattr(haproxy.shutil, "which", lambda *_, **__: None)
    with pytest.raises(TrebuchetError, match="sudo apt-get install haproxy"), haproxy.haproxy([]):
        pass


@pytest.mark.slow
def test_a_short_measurement_has_every_figure(monkeypatch):
    if not (shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")):
        pytest.skip("needs Debian's haproxy")
    assert build(jobs.LOAD).exists()
    monkeypatch.setattr(jobs, "PAIRS", 1)
    monkeypatch.setattr(jobs, "SECONDS", 0.1)
    values = jobs._measure(1)
    assert values.keys() == set(GROUPS["jobs"].figures)
    assert all(values[n] > 0 for n in values if not any(d in n for d in DIFFERENCES)), values
    assert 0 <= values["jobs.stalled_effect"] <= 1
    assert 0.5 < values["jobs.linear_44"] < 2
    assert values["jobs.fairness_64"] <= 1
