"""Boards of two ports: what the host's port needs of pins, clocks and registers."""

import os
import re
import shutil

import pytest
from trebuchet.boards import load_board
from trebuchet.soc.build import generate_only

pytestmark = pytest.mark.nightly

BOARDS = ["colorlight_5a_75b", "colorlight_i9"]


@pytest.fixture(scope="module", params=BOARDS)
def generated(request, root):
    """With a processor, and without: constraints and Verilog."""
    # Another process may test the same board; a name has at most 24 characters.
    name = f"ports_{request.param.removeprefix('colorlight_')}_{os.getpid()}"
    board = load_board(request.param).variant(name=name, bridge=True)
    folder = root / "build" / board.name
    try:
        placement = generate_only(board, folder)
        lpf = placement.path(".lpf")
        yield board, lpf.read_text(), lpf.with_suffix(".v").read_text()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_no_pin_is_used_twice(generated):
    """The chips share reset and management, which are the first one's."""
    _, lpf, _ = generated
    pins = re.findall(r'LOCATE COMP "[^"]+" SITE "([^"]+)"', lpf)
    assert len(pins) == len(set(pins))
    assert lpf.count('"eth1_rx_data[') == 2 * 4
    assert '"eth1_mdio"' not in lpf
    pads = re.findall(r'LOCATE COMP "(eth1_[^"]+)"', lpf)
    assert set(pads) <= set(re.findall(r'IOBUF PORT "([^"]+)" IO_TYPE=LVCMOS33', lpf))


def test_both_receive_clocks_are_constrained(generated):
    _, lpf, _ = generated
    for port in (0, 1):
        assert f'FREQUENCY PORT "eth_clocks{port}_rx" 125.0 MHz;' in lpf


def test_each_port_has_clocks_of_its_own(generated):
    _, _, verilog = generated
    for side, port in (("eth", 0), ("host_eth", 1)):
        assert re.search(rf"assign {side}_rx_clk = eth_clocks{port}_rx;", verilog)
        assert re.search(rf"posedge {side}_tx_clk\b", verilog)


def test_without_a_processor_the_bridge_is_on(generated):
    """By an assignment: synthesis may forget a value that a signal without a driver begins with."""
    board, _, verilog = generated
    if board.has_cpu:
        pytest.skip("firmware has the register")
    source = re.search(r"assign \w+bridge_station_csr__enable = \{(\w+)\};", verilog)[1]
    assert f"assign {{{source}}} = 1'd1;" in verilog
