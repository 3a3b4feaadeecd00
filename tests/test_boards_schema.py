"""Board files: what they may say, and that every board says it."""

import dataclasses
import re

import pytest
from trebuchet.boards import NAMES, load_board
from trebuchet.boards.schema import BoardError
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc.map import MAIN_RAM, MemoryMap

SIM = load_board("sim")


@pytest.mark.parametrize("name", NAMES)
def test_every_board_loads_under_its_name(name):
    board = load_board(name)
    assert board.name == name
    described = board.describe()
    assert described["sys_clk_hz"] == board.sys_clk_hz
    assert "platform" not in described


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Sim"}, "name must be a lower-case name, not 'Sim'"),
        ({"flow": "vivado"}, "flow must be one of ('sim', 'trellis'), not 'vivado'"),
        ({"sys_clk_hz": 5}, "sys_clk_hz must be an integer from 1000000 to 500000000, not 5"),
        ({"sys_clk_hz": 5e7}, "sys_clk_hz must be an integer from 1000000 to 500000000, "),
        ({"data_width": 48}, "data_width must be one of (32, 64, 128), not 48"),
        ({"rom_bytes": 40_000}, "rom_bytes must be a power of two, not 40000"),
        ({"segment_bytes": 256}, "segment_bytes must be an integer from 512 to 131072, not 256"),
        ({"sessions": True}, "sessions must be an integer from 1 to 131072, not True"),
        ({"attach": 3}, "attach must be a function, not 3"),
        ({"mac": "01:00:00:00:00:01"}, "mac must be a unicast address like "),
        ({"ip": "10.0.0.256"}, "ip must be an IPv4 address like 10.0.0.2, not '10.0.0.256'"),
    ],
)
def test_wrong_values_are_refused(changes, message):
    name = changes.get("name", "sim")
    with pytest.raises(BoardError, match=f"^Board {name!r}: {re.escape(message)}"):
        dataclasses.replace(SIM, **changes)


def test_an_unknown_board_is_named_with_the_known_ones():
    with pytest.raises(TrebuchetError, match="^there is no board 'nexys'; the boards are: sim, "):
        load_board("nexys")


def test_addresses_are_numbers_with_the_first_byte_on_top():
    board = dataclasses.replace(SIM, mac="02:00:5e:10:00:01", ip="192.168.1.50")
    assert board.mac_int == 0x02005E100001
    assert board.ip_int == 0xC0A80132


@pytest.mark.parametrize("name", NAMES)
def test_the_shells_memory_is_the_upper_half(name):
    board = load_board(name)
    memory = MemoryMap(board.dram_bytes)
    assert memory.base == MAIN_RAM + memory.size
    assert memory.base % board.segment_bytes == 0
    assert 2 * memory.size == board.dram_bytes


@pytest.mark.parametrize("size", [0, 3 << 20, 1 << 31])
def test_memory_sizes_that_cannot_be(size):
    with pytest.raises(TrebuchetError, match="^external memory must be a power of two"):
        MemoryMap(size)
