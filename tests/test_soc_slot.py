"""The SD host at the card slots of real boards: cells of the pins, directions, boards without."""

import re

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out
from migen import ClockDomain
from trebuchet.boards import load_board
from trebuchet.cores.drive.port import DriveSignature
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc.bridge import AmaranthModule
from trebuchet.soc.drive import SdSlot

pytestmark = pytest.mark.slow


class Requester(wiring.Component):
    """What has a drive port and reads nothing."""

    def __init__(self):
        super().__init__({"drive": Out(DriveSignature(32, 0))})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.drive.cmd.payload.count.eq(self.drive.cmd.payload.count + 1)
        m.d.comb += [self.drive.cmd.valid.eq(1), self.drive.rdata.ready.eq(1)]
        return m


def slot_of(name, folder):
    """Verilog of a slot on the board ``name``, and the slot."""
    board = load_board(name)
    platform = board.platform()
    fabric = AmaranthModule(platform, Requester(), "requester", folder)
    slot = SdSlot(board, platform, fabric, 32, folder)
    slot.submodules += fabric
    slot.clock_domains.cd_sys = ClockDomain("sys")
    return str(platform.get_verilog(slot)), slot


def instances(verilog, cell):
    return len(re.findall(rf"^{cell}\b", verilog, re.M))


@pytest.mark.parametrize(
    ("name", "directions"),
    [("ecpix5", 3), ("ulx3s", 0), ("orangecrab", 0), ("butterstick", 0), ("logicbone", 0)]
    + [("trellisboard", 0)],
)
def test_every_pin_of_an_ecp5_has_its_register(name, directions, tmp_path):
    verilog, slot = slot_of(name, tmp_path)
    assert instances(verilog, "OFS1P3BX") == 1 + 5 + directions
    assert instances(verilog, "IFS1P3BX") == 5
    assert [bank.block.name for bank in slot.banks.values()] == ["sd"]
    assert slot.banks["csr"].block.registers[0].reset >> 16 == 1  # the sample point


def test_a_slot_of_an_ultrascale(tmp_path):
    verilog, _ = slot_of("kcu105", tmp_path)
    assert instances(verilog, "IOBUF") == 5


@pytest.mark.parametrize("name", ["versa_ecp5", "vcu118", "alveo_u200", "colorlight_5a_75b"])
def test_a_board_without_a_slot(name, tmp_path):
    with pytest.raises(TrebuchetError) as error:
        slot_of(name, tmp_path)
    assert str(error.value) == (
        f"board '{name}': drive 'sd' needs a card slot, but the board's platform has no resource "
        "'sdcard'; leave drive at 'none', or add the slot's pins with add_extension in the board "
        "file's platform()"
    )
