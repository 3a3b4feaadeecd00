"""The job server's scheduler alone, in simulated time: shares of users and of nodes."""

import subprocess

import pytest
from jobd_bench import build
from trebuchet.host.measure.figures import jain


def schedule(policy, nodes, jobs, *users, window=2):
    """Jobs of each user and of each node; users are ``(begin, service)`` in milliseconds."""
    places = [f"{begin}:{service}" for begin, service in users]
    command = [build("trebuchet-jobd-schedule"), policy, window, nodes, jobs, *places]
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, check=True)
    return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]


def near(value, wanted, share=0.05):
    return abs(value - wanted) <= share * wanted + 2


@pytest.mark.parametrize("nodes", [1, 2, 5])
@pytest.mark.parametrize("policy", ["queue", "stack", "least"])
def test_users_have_equal_time_not_equal_jobs(policy, nodes):
    services = (1, 2, 4, 7)
    users, by_node = schedule(policy, nodes, 5000, *((0, service) for service in services))
    times = [jobs * service for jobs, service in zip(users, services, strict=True)]
    assert all(near(time, sum(times) / len(times)) for time in times), users
    assert sum(users) == sum(by_node) == 5000


def test_a_user_that_was_idle_has_saved_up_nothing():
    """After 500 ms there are three instead of two, and from then on each has a third."""
    users, _ = schedule("least", 1, 400, (0, 5), (0, 5), (500, 5))
    assert users[0] == users[1]
    assert all(near(jobs, wanted) for jobs, wanted in zip(users, (150, 150, 100), strict=True))


@pytest.mark.parametrize("policy", ["queue", "stack", "least"])
def test_a_saturated_pool_has_no_idle_node(policy):
    _, by_node = schedule(policy, 4, 400, (0, 3))
    assert by_node == [100] * 4


@pytest.mark.parametrize("window", [1, 2, 3])
def test_any_window_keeps_the_shares(window):
    users, _ = schedule("least", 3, 3000, (0, 1), (0, 5), window=window)
    assert near(users[0], 5 * users[1])


def test_a_slow_start_is_forgotten():
    """The first jobs of a cold machine are long, of whichever user they are: that counts once."""
    users, _ = schedule("least", 4, "40000:8", *[(0, 1)] * 64)
    assert jain(users) > 0.995, users
