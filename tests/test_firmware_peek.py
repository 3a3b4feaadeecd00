"""The firmware's commands `peek` and `poke`, with and without the hash of a register map."""

import ctypes

import pytest
from firmware_host import Text, generated, new_text, shared_library
from firmware_lib import RAM, map_memory
from trebuchet.soc.csr_export import c_header

#: Where the test's registers and memory are, in bytes from RAM.
CSR, SRAM, ROM, MAIN = 0x1000, 0x2000, 0x3000, 0x4000
#: Of the empty map, which the test's generated header has.
MAP = "4f53cda18c2baa0c"
COMMANDS = ("counters_status", "counters", "role", "ip", "crash", "restart", "lease")
EXTRA = (
    '#include "command.h"\n#include "log.h"\n'
    + "".join(
        f"uint8_t {name}_command(struct words *words, struct text *out)\n"
        "{ (void)words; (void)out; return 0; }\n"
        for name in COMMANDS
    )
    + """
uint8_t command_config(struct words *words, struct text *out) { (void)words; (void)out; return 0; }
uint8_t command_image(struct words *words, struct text *out) { (void)words; (void)out; return 0; }
uint32_t board_uptime_ms(void) { return 0; }
uint32_t board_interrupt_cycles(void) { return 0; }
const char *restart_cause_name(void) { return ""; }
uint32_t restart_count(void) { return 0; }
"""
)


@pytest.fixture(scope="module")
def lib(tmp_path_factory):
    folder = generated(tmp_path_factory.mktemp("peek"))
    regions = {"CSR": CSR, "SRAM": SRAM, "ROM": ROM, "MAIN_RAM": MAIN}
    (folder / "generated" / "mem.h").write_text(
        "".join(
            f"#define {name}_BASE {RAM + at:#x}ul\n#define {name}_SIZE 0x100\n"
            for name, at in regions.items()
        )
    )
    (folder / "generated" / "soc.h").write_text(
        '#define TREBUCHET_VERSION "1"\n#define TREBUCHET_BOARD "sim"\n'
        '#define CONFIG_CPU_HUMAN_NAME "x"\n#define CONFIG_CLOCK_FREQUENCY 1\n'
    )
    (folder / "generated" / "trebuchet_regs.h").write_text(c_header([]))
    (folder / "system.h").write_text("static inline void flush_cpu_dcache(void) {}\n")
    return shared_library(folder, ("command", "commands", "text", "log"), EXTRA)


@pytest.fixture
def run(lib):
    """Carry out a command; its status and text."""
    map_memory()

    def run(line):
        buffer, text = new_text(4096)
        assert isinstance(text, Text)
        data = line.encode()
        status = lib.command_run(data, ctypes.c_size_t(len(data)), ctypes.byref(text))
        return status & 0xFF, buffer.raw[: text.length].decode()

    return run


def word(at):
    return ctypes.c_uint32.from_address(RAM + at)


def test_the_hash_is_that_of_the_header(lib, run):
    assert run(f"peek {RAM + CSR} 1 {MAP}") == (0, f"{RAM + CSR:08x}: 00000000\n")


@pytest.mark.parametrize("named", ["", f" {MAP}"])
def test_words_are_read_and_written(run, named):
    for number in range(5):
        word(CSR + 4 * number).value = number
    first = f"{RAM + CSR:08x}: 00000000 00000001 00000002 00000003\n"
    assert run(f"peek {RAM + CSR:#x} 5{named}") == (
        *(0, first + f"{RAM + CSR + 16:08x}: 00000004\n"),
    )
    assert run(f"poke {RAM + CSR + 0xFC} 0xdeadbeef{named}") == (0, "")
    assert word(CSR + 0xFC).value == 0xDEADBEEF


@pytest.mark.parametrize("at", [SRAM, ROM, MAIN])
def test_with_a_map_only_registers_are_there(run, at):
    word(at).value = 7
    assert run(f"peek {RAM + at}") == (0, f"{RAM + at:08x}: 00000007\n")
    refused = 11, "error: BAD_ARGUMENT: no register is there\n"
    assert run(f"peek {RAM + at} 1 {MAP}") == refused
    assert run(f"poke {RAM + at} 5 {MAP}") == refused
    assert word(at).value == 7


@pytest.mark.parametrize("at", [CSR - 4, CSR + 1, CSR + 2, CSR + 0x100, 0x8000])
def test_elsewhere_nothing_is_there(run, at):
    refused = 11, "error: BAD_ARGUMENT: no memory or register is there\n"
    assert run(f"peek {RAM + at}") == run(f"poke {RAM + at} 1") == refused


def test_a_run_must_end_where_the_registers_do(run):
    assert run(f"peek {RAM + CSR + 0xF8} 2 {MAP}")[0] == 0
    assert run(f"peek {RAM + CSR + 0xF8} 3 {MAP}")[0] == 11


def test_addresses_of_another_map_reach_nothing(run):
    word(CSR).value = 1
    other = 11, "error: BAD_ARGUMENT: the register map is another\n"
    for named in (MAP[:-1], MAP + "0", "0"):
        assert run(f"peek {RAM + CSR} 1 {named}") == other
        assert run(f"poke {RAM + CSR} 5 {named}") == other
    assert word(CSR).value == 1


@pytest.mark.parametrize(
    "line", ["peek", "peek x", "peek 0 x", "peek 0 257", "poke", "poke 0", "poke 0 x"]
)
def test_forms_that_are_none(run, line):
    status, text = run(line)
    assert status == 11
    assert text.startswith(f"error: BAD_ARGUMENT: the form is: {line[:4]} ADDRESS ")
    assert run(f"{line[:4]} 0 1 {MAP} 1")[1].startswith("error: BAD_ARGUMENT: the form is: ")
