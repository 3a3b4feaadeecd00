"""Figures of the complete shell: what is measured is what a board has, and leaks are found."""

from trebuchet.bench import shell, tcp
from trebuchet.boards.presets import TCP_PRESETS


def test_the_engine_is_that_of_a_board_with_preset_full():
    config, preset = shell.tcp_config(), TCP_PRESETS["full"]
    assert (config.width, config.sessions, config.cache) == (64, 1 << 17, 1024)
    assert (config.places, config.pool_segments) == (preset.places, preset.segments)
    assert (
        config.rx_segments >= 2 * tcp.CLIENTS
    )  # all may open at once, and have another on its way


def counters(config):
    """Of an engine at rest, all of whose stores are free."""
    return {
        "tcp.sessions_used": 0,
        "tcp.half_open": 0,
        "tcp.segments_free": config.pool_segments,
        "tcp.descriptors_free": 4 * config.sessions,
        "tcp.idle": 1,
        **{f"tcp.places_free_{k}": config.places for k in range(5)},
    }


def test_whatever_is_not_free_has_leaked():
    config = shell.tcp_config()
    assert tcp.left_over(config, counters(config)) == 0
    for name, value in counters(config).items():
        found = counters(config) | {name: value - 1 if value else 1}
        assert tcp.left_over(config, found) == 1, name
