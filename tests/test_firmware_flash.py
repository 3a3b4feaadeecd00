"""The firmware's flash commands, with a model of a flash behind them."""

import ctypes
import gc

import pytest
from firmware_lib import FlashPort, build
from nor_model import NorModel
from trebuchet.models.status import Status


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    library = build(root, tmp_path_factory.mktemp("flash"), "flash.c", "crc32.c", "values.c")
    for name in ("flash_start", "flash_erase", "flash_program"):
        getattr(library, name).restype = ctypes.c_uint8
    library.crc32_of.restype = ctypes.c_uint32
    return library


@pytest.fixture
def flash(lib):
    port = FlashPort(lib)
    yield port.flash
    assert not port.flash.selected


def _read(lib, address, length):
    buffer = ctypes.create_string_buffer(length)
    lib.flash_read(address, buffer, ctypes.c_size_t(length))
    return buffer.raw


def _program(lib, address, data):
    return lib.flash_program(address, data, ctypes.c_size_t(len(data)))


def test_starts(lib, flash):
    assert lib.flash_start() == Status.OK


def test_waits_for_a_write_from_before_the_restart(lib, flash):
    flash.busy = 3
    assert lib.flash_start() == Status.OK
    assert flash.busy == 0


def test_writes_across_pages_and_reads_back(lib, flash):
    data = bytes(range(256)) * 3
    flash.data[0x3000 : 0x3000 + 8192] = bytes(8192)
    assert lib.flash_erase(0x3000, 4097) == Status.OK
    assert flash.erased == 2
    assert _program(lib, 0x30F0, data) == Status.OK
    assert _read(lib, 0x30F0, len(data)) == data
    assert flash.programmed == len(data)
    assert flash.data[0x30EF] == flash.data[0x30F0 + len(data)] == 0xFF


def test_clears_bits_without_erasing(lib, flash):
    assert _program(lib, 0x100, b"\xfe") == Status.OK
    assert _program(lib, 0x100, b"\xfc") == Status.OK
    assert _program(lib, 0x100, b"\xff") == Status.FLASH_ERROR, "a bit cannot be set"
    assert flash.data[0x100] == 0xFC


def test_tells_a_protected_flash(lib, flash):
    flash.protected = True
    assert _program(lib, 0, b"x") == Status.FLASH_ERROR


def test_tells_a_write_that_was_cut_off(lib, flash):
    flash.power = 300
    assert _program(lib, 0, bytes(400)) == Status.FLASH_ERROR
    assert flash.data[:300] == bytes(300)


def test_gives_up_on_a_flash_that_stays_busy(lib):
    port = FlashPort(lib, NorModel(polls=10**9))
    port.flash.busy = 10**9
    assert lib.flash_start() == Status.FLASH_ERROR


def test_does_not_hang_without_a_flash(lib):
    class Nothing(NorModel):
        def answer(self):
            return 0xFF

    FlashPort(lib, Nothing())
    assert lib.flash_start() == Status.FLASH_ERROR  # its status reads as busy, for ever


def test_the_pins_stay_when_nobody_keeps_the_port(lib):
    def port_that_ends():
        return FlashPort(lib).flash

    flash = port_that_ends()
    gc.collect()
    # Functions of another kind take the memory of those that ended.
    others = [ctypes.CFUNCTYPE(ctypes.c_uint8, ctypes.c_uint8)(lambda _: 0xFF) for _ in range(64)]
    assert lib.flash_start() == Status.OK
    assert not flash.selected
    assert len(others) == 64


def test_a_flash_above_16_mib_has_addresses_of_four_bytes(root, tmp_path):
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated" / "soc.h").write_text("#define TREBUCHET_FLASH_SIZE 0x2000000\n")
    library = build(root, tmp_path, "flash.c")
    port = FlashPort(library, NorModel(1 << 25))
    data, high = bytes(range(256)) * 2, (1 << 24) + 0x3000
    for at in (0x3000, high):
        port.flash.data[at : at + 4096] = bytes(4096)
    assert library.flash_erase(high, 1) == Status.OK
    assert _program(library, high + 0xF0, data) == Status.OK
    assert _read(library, high + 0xF0, len(data)) == data
    assert not any(port.flash.data[0x3000:0x4000]), "the same place in the lower half"
