"""Configurations of the TCP engine: presets, derived sizes, refusals."""

from dataclasses import replace

import pytest
from tcp_bench import SMALL
from trebuchet.cores.tcp.config import FULL, TINY, TcpConfig
from trebuchet.cores.tcp.config import SMALL as SMALL_PRESET


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sessions": 48}, r"Number of sessions must be a power of two from 2 to 65536, not 48"),
        (
            {"cache": 3},
            r"Number of cached sessions must be a power of two from 2 to 8, of .*, not 3",
        ),
        ({"cache": 2, "state_base": 64}, r"State base must be a multiple of 128 .*, not 64"),
        ({"ports": ()}, r"Number of services must be 1 to 8, not 0"),
        ({"segments": 9}, r"Number of segments must be 1 to 8, not 9"),
        ({"pool_base": 100}, r"Pool base must be a multiple of 4096 .*, not 100"),
        ({"mss": 9000}, r"MSS must be 536 to 1460, not 9000"),
        (
            {"rx_buffer": 3000},
            r"Receive buffer must be a power of two from 2048 to 32768, not 3000",
        ),
        ({"wheel": 10}, r"Wheel size must be a power of two from 4 to 4096, not 10"),
        ({"rto_min": 0}, r"rto_min must be 1 to 65535, not 0"),
        ({"width": 8}, r"Data path width must be one of .*, not 8"),
    ],
)
def test_configuration_is_checked(change, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        replace(SMALL, **change)


def test_presets():
    sizes = {preset.sessions: preset.state_size for preset in (TINY, SMALL_PRESET, FULL)}
    assert sizes == {64: 0, 1024: 0, 131072: 33 << 20}
    assert (FULL.session_bits, FULL.cache) == (17, 1024)


def test_derived_sizes_follow_replace():
    config = replace(TcpConfig(), sessions=4)
    assert (config.pool_segments, config.half_open_limit, config.session_bits) == (4, 3, 2)


def test_congestion_control_by_name():
    assert TcpConfig().congestion == "newreno"
    message = r"^Congestion control must be newreno or fixed, not 'cubic'$"
    with pytest.raises(ValueError, match=message):
        TcpConfig(congestion="cubic")
