"""TcpEngine under loss, duplication and reordering in both directions, many sessions at once."""

import pytest
from storm_bench import storm
from streams import seeds

pytestmark = pytest.mark.slow


@pytest.mark.nightly
@seeds(1)
def test_clean_link(seed):
    storm(seed, count=8, size=2000, loss=0, limit=700)


@seeds(2)
def test_bad_link(seed):
    storm(seed, count=6, size=2500, loss=0.06, limit=1500)


@pytest.mark.nightly
@seeds(1)
def test_cache_for_two_sessions(seed):
    """Three connections at work: every other step throws a session out of the cache."""
    storm(seed, count=3, size=400, loss=0, limit=700, cache=2)


@pytest.mark.nightly
@seeds(1)
def test_bad_link_with_a_cache_for_two_sessions(seed):
    # So few that whatever is fetched ahead throws out what is at work: time-outs must be longer.
    storm(seed, count=6, size=1500, loss=0.06, limit=1500, tick=90, cache=2)


@pytest.mark.nightly
@pytest.mark.parametrize("cache", [None, 8], ids=["ram", "cache"])
@seeds(1)
def test_bad_link_with_all_options(cache, seed):
    """VLANs, scaled windows, SACK, SYN cookies for all but one at a time."""
    options = {name: True for name in ("vlan", "scaling", "sack", "cookies", "icmp", "active")}
    options |= {"runs": 4, "half_open": 1, "cache": cache} | ({"wheel": 128} if cache else {})
    storm(seed, count=6, size=2000, loss=0.06, limit=1500, **options)


@pytest.mark.nightly
@seeds(2)
def test_long_storm(seed):
    storm(seed, count=16, size=4000, loss=0.05, limit=8000)
