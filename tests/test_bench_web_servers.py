"""Other web servers (``bench/web_servers.py``); skipped where they are not installed."""

import pytest
from trebuchet.bench import web_servers
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim.netns import Namespace


@pytest.fixture
def network():
    if missing := web_servers.missing_programs():
        pytest.skip(f"other web servers are not installed: {' '.join(missing)}")
    with Namespace() as found:
        yield found


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("name", ["nginx", "lighttpd"])
def test_a_server_answers_the_load(network, name, each):
    with web_servers.serving(name, network):
        assert web_servers.load(network, each, seconds=1) > 0


def test_a_missing_file_is_no_answer(network, monkeypatch):
    with web_servers.serving("nginx", network):
        monkeypatch.setattr(web_servers, "NAME", "none.bin")
        with pytest.raises(TrebuchetError, match="Non-2xx"):
            web_servers.load(network, False, seconds=1)


def test_without_the_servers_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(web_servers, "_which", lambda program: None)
    with pytest.raises(TrebuchetError, match="apt-get install nginx-light lighttpd wrk"):
        web_servers.servers().measure(1)
