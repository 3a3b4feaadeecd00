"""Sizes of the TCP engine: presets, and what ``--tcp`` makes of a board."""

import re
from types import SimpleNamespace

import pytest
from trebuchet.boards import load_board, sim
from trebuchet.boards.presets import TCP_PRESETS, TcpChoice
from trebuchet.cores.shell import Shell
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.plan import Plan
from trebuchet.soc.build import shell_config
from trebuchet.soc.check import check
from trebuchet.soc.map import MemoryMap
from trebuchet.soc.plans import build_label, sim_board, tcp_of, with_choices

#: Sessions, of which on chip, segments, places; and the MiB of the simulated board's memory.
IN_MEMORY = {
    "compact": (1024, 16, 64, 16, 16),
    "medium": (4096, 256, 256, 64, 32),
    "full": (131072, 1024, 512, 256, 128),
    "full:places=0,sessions=32768": (32768, 1024, 512, 0, 1024),
}
#: Boards that take each.
BOARDS = {
    "compact": ("colorlight_i5", "colorlight_5a_75b"),
    "medium": ("versa_ecp5", "logicbone"),
    "full": ("ecpix5", "butterstick", "trellisboard", "alveo_u200", "vcu118", "kcu105"),
}


@pytest.mark.parametrize("text", IN_MEMORY)
def test_the_simulated_board_has_memory_for_its_sessions(text):
    board = sim_board(tcp=TcpChoice.parse(text))
    sessions, cache, segments, places, mebibytes = IN_MEMORY[text]
    assert (board.sessions, board.cache, board.segments) == (sessions, cache, segments)
    assert board.places == places
    assert board.dram_bytes == mebibytes << 20
    config = shell_config(board)
    tcp, state = config.tcp, config.memory["sessions"]
    assert (tcp.sessions, tcp.cache, tcp.pool_segments) == (sessions, cache, segments)
    assert tcp.rows == (places or sessions)
    assert (state.base, state.size) == (tcp.state_base, tcp.state_size)
    assert state.base % 128 == 0
    regions = list(config.memory)
    assert all(one.end <= two.base for one, two in zip(regions, regions[1:], strict=False))
    assert regions[-1].end <= MemoryMap(board.dram_bytes).base + board.dram_bytes // 2


def test_receive_dma_and_sessions_are_served_first():
    config = shell_config(sim_board(tcp=TcpChoice("compact")))
    priority = Shell(config)._arbiter.priority
    assert priority == (0, 0, *(1,) * (len(priority) - 2))
    beside = shell_config(load_board("sim"))
    assert Shell(beside)._arbiter.priority == (0, *(1,) * (len(priority) - 2))
    assert not any(region.name == "sessions" for region in beside.memory)


@pytest.mark.parametrize(("name", "preset"), [(n, p) for p, names in BOARDS.items() for n in names])
def test_boards_have_memory_for_their_sessions(name, preset):
    board = with_choices(load_board(name), tcp=TcpChoice(preset))
    config = shell_config(board)
    assert config.tcp.sessions == TCP_PRESETS[preset].sessions
    assert config.memory.size <= board.dram_bytes // 2


def test_every_preset_is_a_board():
    for name, preset in TCP_PRESETS.items():
        board = load_board("versa_ecp5").variant(**TcpChoice(name).changes)
        assert (board.tcp, board.sessions, board.cache) == (name, preset.sessions, preset.cache)


def test_a_choice_takes_the_place_of_what_a_board_says_of_its_sessions():
    board = load_board("versa_ecp5")
    stated = board.variant(sessions=16, segment_bytes=1 << 16)
    chosen = with_choices(stated, tcp=tcp_of("medium:sessions=2048,inspect=false"))
    assert (chosen.sessions, chosen.cache, chosen.segments) == (2048, 256, 256)
    assert (chosen.segment_bytes, chosen.inspect) == (1 << 16, False)
    assert with_choices(board) is board
    assert tcp_of(None) is None


def test_builds_of_other_sizes_have_folders_of_their_own():
    plan = Plan.of_roles("loopback")
    assert build_label("sim", None) == "sim"
    assert build_label("sim", plan, TcpChoice("medium")) == "sim_loopback_medium"
    text = "full:sessions=32768,cache=64"
    assert build_label("sim", None, TcpChoice.parse(text)) == "sim_full_cache_64_sessions_32768"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("huge", "a TCP preset must be one of lean, tiny, small, compact, medium, full, not 'huge"),
        ("medium:width=64", "TCP preset 'medium': a field must be one of sessions, cache, segment"),
        ("medium:cache", "a TCP engine must be PRESET or PRESET:FIELD=VALUE,FIELD=VALUE, not 'me"),
        ("medium:cache=many", "Board 'sim': cache must be an integer from 0 to 4096, not 'many'"),
        ("medium:places=48", "Board 'sim': places must be 0 or a power of two from 2 to 4096, not"),
        ("full:places=0", "the simulated board has at most 536870912 bytes for the shell; 131072 "),
    ],
)
def test_wrong_choices_are_refused_in_one_line(text, message):
    with pytest.raises(TrebuchetError, match=f"^{re.escape(message)}.*$"):
        sim_board(tcp=tcp_of(text))


def test_a_memory_that_is_too_small_is_told():
    message = (
        r"^board 'versa_ecp5': 131072 sessions need \d+ bytes of external memory; 67108864 are "
    )
    with pytest.raises(TrebuchetError, match=message):
        list(check("versa_ecp5", tcp=tcp_of("full:segments=4096")))
    findings = dict(check("sim", tcp=TcpChoice("medium")))
    assert findings["sizes"].startswith("4096 TCP sessions (preset medium, 256 of them on chip)")
    assert ", results of up to 2032 bytes, " in findings["sizes"]


@pytest.mark.parametrize("log2", range(24, 31))
def test_the_simulated_memory_is_as_large_as_it_is_to_be(log2):
    chip = SimpleNamespace(nbanks=4, nrows=4096, ncols=256)
    kind = type("Chip", (), vars(chip))
    made = sim._sdram(SimpleNamespace(MT48LC4M16=kind), 1 << log2)
    assert 4 * made.nbanks * made.nrows * made.ncols == 1 << log2
    assert made.ncols <= 1024
    assert (made is kind) == (log2 == 24)
