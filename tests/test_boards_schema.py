"""Board files: what they may say, and that every board says it."""

import dataclasses
import re

import pytest
from trebuchet.boards import NAMES, load_board, schema
from trebuchet.boards.flash import Flash, flash_layout
from trebuchet.boards.presets import TCP_FIELDS, TCP_PRESETS
from trebuchet.boards.schema import BoardError
from trebuchet.cores.services.mailbox import Mailbox
from trebuchet.cores.shell_config import ShellConfig
from trebuchet.cores.shell_memory import MAILBOX_SLOT, RESULT_SLOT
from trebuchet.cores.tcp import config
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.plan import Plan
from trebuchet.models.role_folders import role_names
from trebuchet.models.smp_framing import MESSAGE_HEADER
from trebuchet.sim.tops import source
from trebuchet.soc.build import make_shell, shell_config
from trebuchet.soc.map import MAIN_RAM, MemoryMap
from trebuchet.soc.plans import sim_board
from trebuchet.soc.toolchain import ROUTERS

PRESETS = "('lean', 'tiny', 'small', 'compact', 'medium', 'full')"
SIM, ULX3S, KCU105, VCU118 = map(load_board, ("sim", "ulx3s", "kcu105", "vcu118"))


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
        ({"name": "Sim"}, "name must be a lower-case name of at most 24 characters, not 'Sim'"),
        ({"name": "s" * 25}, "name must be a lower-case name of at most 24 characters, not 'sss"),
        ({"flow": "ise"}, "flow must be one of ('sim', 'trellis', 'vivado'), not 'ise'"),
        ({"flow": "vivado"}, "capacity must be a Capacity, not None"),
        ({"capacity": 5}, "capacity must be None for flow 'sim', not 5"),
        ({"dram_masks": 2}, "dram_masks must be one of (False, True), not 2"),
        ({"sys_clk_hz": 5}, "sys_clk_hz must be an integer from 1000000 to 500000000, not 5"),
        ({"sys_clk_hz": 5e7}, "sys_clk_hz must be an integer from 1000000 to 500000000, "),
        (
            {"plan": Plan.of_roles("webserver")},
            "plan.roles must be of benchmark, burnin, ecg, loopback, matmul, verilog_example, ",
        ),
        ({"plan": "ecg"}, "plan must be a Plan of roles and services, not 'ecg'"),
        ({"data_width": 48}, "data_width must be one of (32, 64), not 48"),
        ({"rom_bytes": 40_000}, "rom_bytes must be a power of two, not 40000"),
        ({"segment_bytes": 256}, "segment_bytes must be an integer from 512 to 131072, not 256"),
        ({"sessions": True}, "sessions must be an integer from 2 to 131072, not True"),
        ({"sessions": 48}, "sessions must be a power of two, not 48"),
        ({"sessions": "64"}, "sessions must be an integer from 2 to 131072, not '64'"),
        ({"tcp": "huge"}, f"tcp must be one of {PRESETS}, not 'huge'"),
        ({"tcp": ["tiny"]}, f"tcp must be one of {PRESETS}, not ['tiny']"),
        ({"tcp": None}, f"tcp must be one of {PRESETS}, not None"),
        ({"cache": 3}, "cache must be 0 or a power of two from 2 to 64, not 3"),
        ({"cache": 1}, "cache must be 0 or a power of two from 2 to 64, not 1"),
        ({"cache": 128}, "cache must be an integer from 0 to 64, not 128"),
        ({"cache": "16"}, "cache must be an integer from 0 to 64, not '16'"),
        ({"cache": 2, "sessions": 4}, "sessions must be at least 8 with a cache, not 4"),
        ({"sessions": 1 << 17}, "sessions must be at most 65536 with cache 0, not 131072"),
        ({"segments": 65}, "segments must be an integer from 0 to 64, not 65"),
        ({"isn_key": 1 << 128}, f"isn_key must be an integer from 0 to {2**128 - 1}, not {2**128}"),
        ({"router": "fast"}, "router must be one of ('quick', 'patient'), not 'fast'"),
        ({"counter_width": 8}, "counter_width must be an integer from 16 to 32, not 8"),
        ({"lut_ram": []}, "lut_ram must be an integer from 0 to 65536, not []"),
        ({"programmable": "no"}, "programmable must be one of (False, True), not 'no'"),
        ({"active": 1}, "active must be one of (False, True), not 1"),
        (
            {"bridge": True, "flow": "trellis", "device": "LFE5U-25F", "sys_clk_hz": 34_000_000}
            | {"lut4_budget": None},
            "bridge must be off where sys_clk_hz times data_width is less than 1.1 Gb/s, not True",
        ),
        ({"bridge": 1}, "bridge must be one of (False, True), not 1"),
        ({"external_tick": 2}, "external_tick must be one of (False, True), not 2"),
        ({"drive": "card"}, "drive must be one of ('none', 'stream', 'sd'), not 'card'"),
        (
            {"drive": "stream", "flow": "trellis", "device": "LFE5U-25F", "lut4_budget": None},
            "drive must be 'none' or, with a processor, 'sd' or (if simulated) 'stream', not",
        ),
        ({"data_width": 32.0}, "data_width must be one of (32, 64), not 32.0"),
        (
            {"dram_bytes": None},
            "dram_bytes must be an integer from 1048576 to 1073741824, not None",
        ),
        ({"name": 5}, "name must be a lower-case name of at most 24 characters, not 5"),
        ({"title": None}, "title must be a line of text, not None"),
        ({"device": "a\nb"}, "device must be a line of text, not 'a\\nb'"),
        ({"device": ""}, "device must be a line of text, not ''"),
        ({"title": " "}, "title must be a line of text, not ' '"),
        ({"lut4_budget": 5}, "lut4_budget must be 0 with device 'Verilator', or left out, not 5"),
        ({"uart_baud": 125_001}, "uart_baud must be at most an eighth of sys_clk_hz, not 125001"),
        *(
            (
                {"loader": value},
                f"loader must be a tuple of openFPGALoader's options, not {value!r}",
            )
            for value in ("--board x", ("",), ("--board", "a\0b"), (5,))
        ),
        ({"mac": None}, "mac must be a unicast address like 02:00:00:00:00:01, not None"),
        ({"ip": 167772162}, "ip must be an IPv4 address of a host like 192.0.2.2, not 167772162"),
        ({"attach": 3}, "attach must be a function, not 3"),
        ({"mac": "01:00:00:00:00:01"}, "mac must be a unicast address like "),
        ({"mac": "00:00:00:00:00:00"}, "mac must be a unicast address like "),
        *(
            ({"ip": ip}, f"ip must be an IPv4 address of a host like 192.0.2.2, not '{ip}'")
            for ip in ("192.0.2.256", "0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255")
        ),
        ({"dram_bytes": 1 << 31}, "dram_bytes must be an integer from 1048576 to 1073741824, not "),
        (
            {"seed": 10**5000},
            "seed must be an integer from 1 to 1000000, not this int, which cannot",
        ),
        (
            {"title": 7 * ["x" * 90]},
            f"title must be a line of text, not ['{'x' * 90}', '{'x' * 90}",
        ),
    ],
)
def test_wrong_values_are_refused(changes, message):
    name = changes.get("name", "sim")
    with pytest.raises(BoardError, match=f"^Board {name!r}: {re.escape(message)}"):
        dataclasses.replace(SIM, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 1000}, "size must be a power of two from 65536 to 16777216, not 1000"),
        ({"size": 1 << 25}, "size must be a power of two from 65536 to 16777216, not 33554432"),
        ({"max_hz": 5}, "max_hz must be an integer from 100000 to 200000000, not 5"),
        ({"config": 5}, "config must be (offset, bytes), not 5"),
        ({"config": (0, -4096)}, "config must be (offset, bytes), not (0, -4096)"),
        ({"config": (0, 4096)}, "config must be 8192 bytes, not (0, 4096)"),
        ({"config": (100, 8192)}, "config must be whole sectors of 4096 bytes within the flash, "),
        ({"golden": (0, 1 << 21)}, "golden must be whole sectors of 4096 bytes within the flash, "),
        ({"firmware": (0, 4096)}, "firmware must be two sectors or more, not (0, 4096)"),
        ({"bitstream": (4096, 8192)}, "bitstream must be at a multiple of 65536, not (4096, 8192)"),
        (
            {"golden": (0, 0x40000 + 4096)},
            "golden_firmware must be behind golden, which ends at 0x41000, not (262144, 262144)",
        ),
    ],
)
def test_wrong_layouts_of_the_flash_are_refused(changes, message):
    flash = dataclasses.replace(SIM.flash, **changes)
    with pytest.raises(BoardError, match=f"^Board 'sim': flash.{re.escape(message)}"):
        dataclasses.replace(SIM, flash=flash)


def test_what_is_loaded_by_a_bootloader_leaves_it_in_its_place():
    """A DFU bootloader lies at 0, where the FPGA starts: nothing else may be written there."""
    dfu = dataclasses.replace(ULX3S, multiboot="none", loader=("--dfu",), flash=None)
    assert dfu.variant(flash=flash_layout(16 << 20, start=1 << 16)).flash.golden[0] == 1 << 16
    message = "must be behind the bootloader of loader '--dfu', which lies at 0, not (0, "
    for flash, name in (
        (flash_layout(16 << 20), "golden"),
        (Flash(size=1 << 20, firmware=(0, 1 << 16)), "firmware"),
    ):
        with pytest.raises(BoardError, match=f"^Board 'ulx3s': flash.{name} {re.escape(message)}"):
            dfu.variant(flash=flash)


def test_the_logicbones_bootloader_has_its_first_megabyte():
    """Of 16: a partition for itself, then two for what it starts (tinydfu-bootloader)."""
    assert load_board("logicbone").flash.golden == (1 << 20, 2 << 20)


def test_a_flash_is_a_flash_or_none():
    assert dataclasses.replace(SIM, flash=None).flash is None
    with pytest.raises(BoardError, match="^Board 'sim': flash must be a Flash or None, not 5$"):
        dataclasses.replace(SIM, flash=5)


def test_routers_are_those_of_the_tools():
    assert tuple(ROUTERS) == schema.ROUTERS
    assert load_board("ulx3s").router == "patient"
    assert load_board("versa_ecp5").router == "quick"


@pytest.mark.parametrize("role", [None, *role_names()])
def test_every_role_fits_the_simulated_board(role):
    """Its name and sizes reach the shell, whose memory is there."""
    board = sim_board(Plan() if role is None else Plan.of_roles(role))
    made = make_shell(board).config
    assert [each.name for each in made.roles] == ([] if role is None else [role])
    assert made.tcp.segment_size == board.segment_bytes
    assert made.memory.base + made.memory.size <= MAIN_RAM + board.dram_bytes


def test_result_slots_follow_from_the_role():
    slots = {
        log2: ShellConfig(TcpConfig(segment_log2=log2), plan=Plan.of_roles("matmul")).result_slot
        for log2 in (15, 16, 17)
    }
    assert slots == {15: 32, 16: 32 << 10, 17: 64 << 10}  # 0, 1 and 3 products
    for roles in ((), ("verilog_example",), ("ecg",), ("ecg", "verilog_example")):
        assert ShellConfig(plan=Plan.of_roles(*roles)).result_slot == RESULT_SLOT
    assert ShellConfig(plan=Plan.of_roles("matmul"), result_slot=64).result_slot == 64
    large = ShellConfig(TcpConfig(segment_log2=17), plan=Plan.of_roles("benchmark", "matmul"))
    assert large.result_slot == 64 << 10  # that of the role with the longest


@pytest.mark.parametrize(
    ("role", "segment_log2", "slot"),
    [
        ("loopback", 15, 32 << 10),
        ("loopback:result_bytes=32756", 15, 64 << 10),  # a segment but for a message's header
        ("loopback", 14, 32 << 10),  # as long as an operand may be, and 16 bytes
        ("loopback", 11, 4 << 10),
        ("loopback:result_bytes=2032", 15, RESULT_SLOT),
        ("benchmark", 15, 32 << 10),
        ("benchmark", 11, 32 << 10),  # its result may be longer than its operand
        ("benchmark:result_bytes=2033", 15, 4 << 10),
        ("benchmark:result_bytes=524272", 15, 512 << 10),
    ],
)
def test_result_slots_follow_from_the_option_of_a_role(role, segment_log2, slot):
    config = ShellConfig(TcpConfig(segment_log2=segment_log2), plan=Plan.of_roles(role))
    assert config.result_slot == slot
    operand = config.tcp.segment_size - MESSAGE_HEADER
    assert config.roles[0].needs.largest_result(operand) <= config.result_room
    if role == "loopback":  # of the largest message that is taken all comes back
        assert config.result_room >= config.tcp.unread - MESSAGE_HEADER


@pytest.mark.parametrize("role", ["loopback", "benchmark"])
@pytest.mark.parametrize("result_bytes", [0, -1, 524273])
def test_room_that_no_result_slot_has(role, result_bytes):
    message = f"role {role!r}: option result_bytes must be 1 to 524272, not {result_bytes}"
    with pytest.raises(TrebuchetError, match=f"^{re.escape(message)}$"):
        ShellConfig(plan=Plan.of_roles(f"{role}:result_bytes={result_bytes}"))


def test_longer_results_need_memory_that_a_board_must_have():
    """The simulated board has fewer sessions; a board that says how many is refused."""
    largest = Plan.of_roles("loopback:result_bytes=32756")
    assert sim_board(Plan.of_roles("loopback", "benchmark")).sessions == 64
    assert sim_board(largest).sessions == 32
    message = (
        "board 'sim': 64 sessions need 10813440 bytes of external memory; 8388608 are the shell's; "
        "8388608 hold results of up to 65520 bytes"
    )
    with pytest.raises(TrebuchetError, match=f"^{message}$"):
        shell_config(SIM.variant(plan=largest))


@pytest.mark.parametrize("sessions", [2, 16, 64])
def test_the_slots_of_few_sessions_lie_where_they_may(sessions):
    """A mailbox slot begins at a multiple of its size, and after the last result slot."""
    plan = Plan.of_roles("matmul")  # its results are short
    shell = ShellConfig(TcpConfig(sessions=sessions), plan=plan)
    memory = shell.memory
    Mailbox(32, sessions, 15, memory["mailbox"].base, 1 << 15)
    assert memory["mailbox"].base % MAILBOX_SLOT == 0
    assert memory["mailbox"].base >= memory["results"].base + 2 * sessions * shell.result_slot
    assert memory.base + memory.size >= memory["page"].end


def test_a_role_goes_into_what_has_a_slot():
    message = "^roles go into board, bridge, fabric, not into 'mirror'"
    with pytest.raises(TrebuchetError, match=message):
        source("mirror", Plan.of_roles("matmul"))
    with pytest.raises(TrebuchetError, match="^there is no role 'nothing'; there are: .*loopback"):
        source("fabric", Plan.of_roles("nothing"))


def test_an_unknown_board_is_named_with_the_known_ones():
    with pytest.raises(TrebuchetError, match="^there is no board 'nexys'; the boards are: sim, "):
        load_board("nexys")


def test_addresses_are_numbers_with_the_first_byte_on_top():
    board = dataclasses.replace(SIM, mac="02:00:5e:10:00:01", ip="192.168.1.50")
    assert board.mac_int == 0x02005E100001
    assert board.ip_int == 0xC0A80132


def tcp_of(board):
    """What its preset and its file make of the TCP engine."""
    return {name: getattr(board, name) for name in TCP_FIELDS}


@pytest.mark.parametrize("preset", TCP_PRESETS)
def test_a_preset_sets_what_a_file_does_not(preset):
    values = {name: getattr(TCP_PRESETS[preset], name) for name in TCP_FIELDS}
    board = dataclasses.replace(VCU118, tcp=preset, **dict.fromkeys(TCP_FIELDS))
    assert tcp_of(board) == values
    other = dataclasses.replace(board, sessions=8192, active=False, inspect=None)
    assert tcp_of(other) == values | {"sessions": 8192, "active": False}


@pytest.mark.parametrize("preset", TCP_PRESETS)
def test_a_preset_reaches_the_engine(preset):
    # More sessions than that would need more memory than a shell can have.
    most = min(TCP_PRESETS[preset].sessions, 1 << 15)
    board = VCU118.variant(tcp=preset, sessions=most)
    tcp = make_shell(board).config.tcp
    of_engine = getattr(config, TCP_PRESETS[preset].engine)
    assert tcp.segment_size == board.segment_bytes
    for name in (*TCP_FIELDS, "runs", "sack", "rx_buffer", "cookies"):
        if name != "segment_bytes":
            expected = board if name in TCP_FIELDS else of_engine
            assert (getattr(tcp, name) or 0) == getattr(expected, name), name


def test_the_twin_of_a_board_keeps_what_its_file_says():
    board = VCU118.variant(tcp="small", counter_width=24)
    twin = board.variant(name="twin", tcp="lean")
    assert tcp_of(twin) == tcp_of(VCU118.variant(tcp="lean")) | {"counter_width": 24}
    assert (twin.name, twin.capacity, twin.tcp) == ("twin", board.capacity, "lean")
    assert tcp_of(dataclasses.replace(twin, plan=Plan())) == tcp_of(twin)


def test_a_usual_layout_of_the_flash():
    flash = flash_layout(16 << 20, start=0x400000)
    assert flash == Flash(
        size=16 << 20,
        golden=(0x400000, 0x200000),
        bitstream=(0x600000, 0x200000),
        firmware=(0x800000, 0x80000),
        config=(0x880000, 0x2000),
    )
    assert flash_layout(16 << 20, start=0, max_hz=10**7).max_hz == 10**7
    without = flash_layout(16 << 20, start=0x400000, bitstream=(0, 0))
    assert without == dataclasses.replace(flash, bitstream=(0, 0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((4 << 20,), "firmware must be whole sectors of 4096 bytes within the flash, not (4194304"),
        ((16 << 20, 100), "golden must be whole sectors of 4096 bytes within the flash, not (100"),
        ((16 << 20, 4096), "bitstream must be at a multiple of 65536, not (2101248, 2097152)"),
        ((16 << 20, -4096), "golden must be (offset, bytes), not (-4096, 2097152)"),
        (("16M",), "size must be a power of two from 65536 to 16777216, not '16M'"),
    ],
)
def test_a_layout_that_does_not_fit_its_flash(arguments, message):
    with pytest.raises(BoardError, match=f"^Board 'ulx3s': flash.{re.escape(message)}"):
        dataclasses.replace(ULX3S, flash=flash_layout(*arguments))


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


@pytest.mark.parametrize(
    ("board", "changes", "message"),
    [
        (SIM, {"multiboot": "pin"}, "multiboot must be one of ('none',), not 'pin'"),
        (ULX3S, {"multiboot": "icap"}, "multiboot must be one of ('none', 'pin'), not 'icap'"),
        (KCU105, {"multiboot": "pin"}, "multiboot must be one of ('none', 'icap'), not 'pin'"),
        (ULX3S, {"flash": None}, "multiboot must be 'none' without flash.golden and flash."),
        (KCU105, {"flash": None}, "multiboot must be 'none' without flash.golden and flash."),
        (
            ULX3S,
            {"flash": dataclasses.replace(ULX3S.flash, golden=(0x600000, 0x200000))},
            "multiboot must be 'none' unless flash.golden begins at 0, not 'pin'",
        ),
        (
            ULX3S,
            {"flash": dataclasses.replace(ULX3S.flash, part="w25q")},
            "flash.part must be empty, not 'w25q'",
        ),
        *(
            (
                KCU105,
                {"flash": dataclasses.replace(KCU105.flash, part=part)},
                f"flash.part must be Vivado's name of the flash, not {part!r}",
            )
            for part in ("", 5, "a}b")
        ),
        *(
            (
                KCU105,
                {"capacity": dataclasses.replace(KCU105.capacity, **{name: value})},
                f"capacity.{name} must be {allowed}, not {value!r}",
            )
            for name, value, allowed in (
                ("family", "xc7", "one of ('xcu', 'xcup')"),
                ("lut6", 0, "a positive integer"),
                ("dsp", "many", "a positive integer"),
            )
        ),
        (
            KCU105,
            {"flash": dataclasses.replace(KCU105.flash, size=1 << 29)},
            "flash.size must be a power of two from 65536 to 268435456, not 536870912",
        ),
    ],
)
def test_ways_to_another_bitstream_that_cannot_be(board, changes, message):
    with pytest.raises(BoardError, match=f"^Board '{board.name}': {re.escape(message)}"):
        dataclasses.replace(board, **changes)


def test_a_board_with_another_bitstream_has_both_parts():
    for board in map(load_board, NAMES):
        assert board.multiboot == "none" or {"golden", "bitstream"} <= set(board.flash.parts)
    assert {load_board(name).multiboot for name in NAMES} == {"none", "pin", "icap"}


MEMORY = {"firmware": "memory", "cpu_variant": "lite"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"firmware": "flash"}, "firmware must be one of ('rom', 'memory'), not 'flash'"),
        (
            {"cpu_variant": "minimal"},
            "cpu_variant must be one of ('lite', 'standard', 'full', 'trebuchet_cached') with "
            "firmware 'memory', not 'minimal'",
        ),
        (
            {"flash": None},
            "firmware must be 'rom' without flash.firmware and flash.golden_firmware, not 'memory'",
        ),
        (
            {"flash": dataclasses.replace(SIM.flash, golden_firmware=(0, 0))},
            "firmware must be 'rom' without flash.firmware and flash.golden_firmware, not 'memory'",
        ),
    ],
)
def test_what_a_boot_rom_needs(changes, message):
    assert SIM.variant(**MEMORY).boot_rom
    with pytest.raises(BoardError, match=f"^Board 'sim': {re.escape(message)}$"):
        SIM.variant(**MEMORY | changes)


def test_a_boot_rom_is_for_one_bitstream():
    flash = dataclasses.replace(ULX3S.flash, golden_firmware=(0x800000, 0x80000))
    flash = dataclasses.replace(flash, size=1 << 24)
    with pytest.raises(BoardError, match="multiboot must be 'none' with firmware 'memory', not 'p"):
        ULX3S.variant(**MEMORY, flash=flash)
