"""Firmware in the ROM of a finished design, by the real tools."""

import random
import re

import pytest
from real_tools import small_design
from soc_placeholder import PlaceholderShell
from trebuchet.boards import load_board
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc import build as build_module
from trebuchet.soc.netlist import synthesis_inputs, synthesise
from trebuchet.soc.place import Placement, place
from trebuchet.soc.rom import PLACED, ROW, fill, stand_in

#: A ROM as LiteX writes it, of ``WORDS`` words; every bit of it can be seen.
ROM = """module top(input clk, input [13:0] adr, output reg [31:0] data);
  reg [31:0] rom[0:WORDS-1];
  initial $readmemh("top_rom.init", rom);
  reg [31:0] dat0;
  always @(posedge clk) dat0 <= rom[adr];
  always @(posedge clk) data <= dat0;
endmodule
"""


def firmware(seed, words):
    source = random.Random(seed)
    return [source.getrandbits(32) for _ in range(words)]


def placed(request, monkeypatch, words, contents):
    verilog = ROM.replace("WORDS", str(words))
    placement = small_design(request, monkeypatch, "rom", verilog)
    text = "".join(f"{word:08x}\n" for word in contents)
    (placement.folder / "top_rom.init").write_text(text)
    synthesise(placement)
    place(placement, [1])
    return placement


BLOCK_RAM = re.compile(r"^\.bram_init (\d+)\n((?:[0-9a-f ]+\n)+)", re.MULTILINE)


def bits_of(text):
    """Of each block RAM of a configuration, by its number: the 9 bits of its words, one by one."""
    found = {
        int(n): [int(word, 16) for word in words.split()] for n, words in BLOCK_RAM.findall(text)
    }
    return {n: [[w >> lane & 1 for w in words] for lane in range(9)] for n, words in found.items()}


def without_block_rams(text):
    return BLOCK_RAM.sub("", text)


def column(words, row, bit):
    return [word >> bit & 1 for word in words[row * ROW :][:ROW]]


BOARD = load_board("versa_ecp5")
STAND_IN = stand_in(3 * ROW - 5)


def test_a_stand_in_has_whole_rows_and_is_always_the_same():
    assert len(STAND_IN) == 3 * ROW
    assert stand_in(ROW) == STAND_IN[:ROW]
    assert stand_in(1) == STAND_IN[:512], "a boot ROM: a block RAM for each 512 words"
    assert len(stand_in(513)) == 1024
    assert stand_in(0) == []
    columns = {
        tuple(word >> bit & 1 for word in STAND_IN[at : at + 512])
        for at in range(0, len(STAND_IN), 512)
        for bit in range(32)
    }
    assert len(columns) == 3 * ROW // 512 * 32


@pytest.mark.slow
def test_firmware_comes_to_where_its_stand_in_was(request, monkeypatch):
    placement = placed(request, monkeypatch, 3 * ROW, STAND_IN)
    before = placement.path(PLACED).read_text()
    rams = bits_of(before)
    where = {
        (row, bit): [(n, lane) for n, ram in rams.items() for lane in range(9) if found(ram, lane)]
        for row in range(3)
        for bit in range(32)
        for found in [lambda ram, lane, of=column(STAND_IN, row, bit): ram[lane] == of]
    }
    assert all(len(places) == 1 for places in where.values())
    for words in (firmware(1, 3 * ROW - 5), firmware(2, 2 * ROW + 1), [0] * (3 * ROW)):
        fill(placement, words)
        after = placement.path(".config").read_text()
        padded = words + [0] * (3 * ROW - len(words))
        rams = bits_of(after)
        for (row, bit), [(number, lane)] in where.items():
            assert rams[number][lane] == column(padded, row, bit), (row, bit)
        assert without_block_rams(after) == without_block_rams(before)
    fill(placement, STAND_IN)
    assert placement.path(".config").read_text() == before == placement.path(PLACED).read_text()


@pytest.mark.slow
def test_a_boot_rom_takes_a_block_ram_for_each_512_words(request, monkeypatch):
    placement = placed(request, monkeypatch, 3 * 512, stand_in(1100))
    before = placement.path(PLACED).read_text()
    assert len(bits_of(before)) == 3
    fill(placement, firmware(6, 1100))
    after = placement.path(".config").read_text()
    assert after != before
    assert without_block_rams(after) == without_block_rams(before)


@pytest.mark.slow
def test_a_rom_that_is_not_the_stand_ins_is_told(request, monkeypatch):
    placement = placed(request, monkeypatch, ROW, firmware(3, ROW))
    with pytest.raises(TrebuchetError, match=r"^of 2048 words .* 128 of 128 pieces are not .*\?$"):
        fill(placement, firmware(4, ROW))
    assert not placement.path(".config").exists()


@pytest.mark.parametrize(("width", "used"), [(1, 8), (2, 8), (4, 8), (9, 9), (18, 9), (36, 9)])
def test_a_block_ram_may_have_any_shape(tmp_path, width, used):
    """Bit ``b`` of word ``w`` is bit ``w * width + b`` of those that the shape uses (TN-02204)."""
    depth = 2048 * used // width
    words = stand_in(ROW)
    images = {"old": words, "new": firmware(5, ROW)}
    texts = {name: configuration(image, depth, width, used) for name, image in images.items()}
    placement = Placement(tmp_path, "top", 50_000_000)
    placement.path(PLACED).write_text(texts["old"])
    fill(placement, images["new"])
    assert placement.path(".config").read_text() == texts["new"]


def test_a_stand_in_that_is_not_there_once_is_told(tmp_path):
    whole = configuration(stand_in(ROW), 2048, 9, 9)
    one = BLOCK_RAM.search(whole).group()
    lost = whole.replace(one, re.sub(r"[0-9a-f]{3}\b", "000", one))
    placement = Placement(tmp_path, "top", 50_000_000)
    for text, missing in ((lost, 9 * 4), (whole + whole, 128), (whole + one, 9 * 4), ("", 128)):
        placement.path(PLACED).write_text(text)
        with pytest.raises(TrebuchetError, match=rf"^of 2048 words .* {missing} of 128 pieces are"):
            fill(placement, firmware(9, ROW))
        assert not placement.path(".config").exists()


def configuration(words, depth, width, used):
    """A configuration whose block RAMs of ``depth`` words of ``width`` bits have ``words``."""
    rams = []
    for row in range(0, len(words), depth):
        for low in range(0, 32, width):
            bits = [word >> low & (1 << width) - 1 for word in words[row:][:depth]]
            line = sum(word << width * at for at, word in enumerate(bits))
            nines = [line >> used * at & (1 << used) - 1 for at in range(2048)]
            rows = (" ".join(f"{nine:03x}" for nine in nines[at:][:8]) for at in range(0, 2048, 8))
            rams.append(f".bram_init {len(rams)}\n" + "".join(f"{text}\n" for text in rows))
    return ".device LFE5UM-45F\n\n" + "\n".join(rams) + "\n.tile R1C1:PLC2\n"


def test_without_a_rom_the_configuration_is_the_placed_one(tmp_path):
    placement = Placement(tmp_path, "top", 50_000_000)
    placement.path(PLACED).write_text("placed\n")
    fill(placement, ())
    assert placement.path(".config").read_text() == "placed\n"


@pytest.mark.nightly
def test_gateware_does_not_depend_on_the_firmware(request, monkeypatch):
    root = request.config.rootpath / "build" / "rom_soc"

    def generated(words):
        class Soc(build_module.TrebuchetSoC):
            def init_mems(self, **options):  # by LiteX's builder, before it would compile firmware
                self.init_rom("rom", words)

        with monkeypatch.context() as patched:
            patched.setattr(build_module, "TrebuchetSoC", Soc)
            with build_module.environment(root):
                soc = build_module._build_soc(BOARD, PlaceholderShell(), root, software=False)
        assert soc.firmware == tuple(words)
        placement = Placement(root / "gateware", soc.platform.name, BOARD.sys_clk_hz)
        # Its order is that of Python's objects.
        return sorted(synthesis_inputs(placement).splitlines())

    first = generated(firmware(6, 5 * ROW + 1))
    assert f"{STAND_IN[7]:08x}" in first
    assert generated(firmware(7, 6 * ROW)) == first
    assert generated(firmware(8, 6 * ROW + 1)) != first  # which takes another row
