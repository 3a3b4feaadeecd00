"""Are the pins of a board's constraints there? Asked of nextpnr, which takes a second.

Of the vendor's packages only the grid of balls is known, from the device's name.
"""

import json
import math
import re

from ..models.errors import TrebuchetError

__all__ = ["check_pins", "check_xdc"]

_LOCATE = re.compile(r'^LOCATE COMP "([^"]+)" SITE "([^"]+)";', re.MULTILINE)
_SET = re.compile(r"^set_property (LOC|IOSTANDARD) (\S+) \[get_ports \{([^}]+)\}\]", re.MULTILINE)
#: Ports of a module, as LiteX declares them: the highest bit of a vector, and the name.
_PORT = re.compile(r"\b(?:input|output|inout)\s+(?:wire|reg)\s+(?:\[(\d+):0\]\s*)?(\w+)")
#: Connections that only a transceiver's pin has, which takes no I/O standard.
_SERIAL = re.compile(r"\.GT[A-Z]+[RT]X[NP]\s*\((\w+)")
_REFERENCE = re.compile(r"^IBUFDS_GT\w+ [^;]*?\.I\s*\((\w+)\),\s*\.IB\s*\((\w+)\)", re.MULTILINE)
#: Letters of the rows of a ball grid (JEDEC leaves out those that look like digits or others).
_ROWS = "ABCDEFGHJKLMNPRTUVWY"


def _users(places):
    """Signals by pin, from pairs of both; raise if a pin has two."""
    users = {}
    for signal, pin in places:
        other = users.setdefault(pin, signal)
        if other != signal:
            raise TrebuchetError(f"pin {pin} is used twice, by {other!r} and by {signal!r}")
    return users


def _signals(verilog, top):
    """Signals of the module ``top`` by the names that constraints have for them, bit by bit."""
    head = re.search(rf"^module {top}\s*\((.*?)\);", verilog, re.MULTILINE | re.DOTALL)
    for high, name in _PORT.findall(head[1]):
        yield from (f"{name}[{bit}]" for bit in range(int(high) + 1)) if high else (name,)


def _check_ports(verilog, top, found):
    """Raise if a port has no pin, or none with an I/O standard, in constraints ``found``."""
    serial = {*_SERIAL.findall(verilog), *(n for pair in _REFERENCE.findall(verilog) for n in pair)}
    has = {(name, signal) for name, _, signal in found}
    for signal in _signals(verilog, top):
        if ("LOC", signal) not in has:
            raise TrebuchetError(f"{signal!r} has no pin; the board's platform must name one")
        if ("IOSTANDARD", signal) not in has and signal.partition("[")[0] not in serial:
            raise TrebuchetError(
                f"{signal!r} has no I/O standard; the board's platform must name that of its pin"
            )


def check_xdc(placement, device):
    """Raise, naming signal and pin, if the design's constraints leave out or misplace a port.

    Each port has a pin and an I/O standard, but for a transceiver's, which has none. No pin is used
    twice, or off the grid. The package of a ``device`` like ``xcku040-ffva1156-2-e`` has 1156 balls
    in a square, whose rows are A to AP; on larger ones the corners are missing. Which balls are I/O
    only Vivado knows.
    """
    found = _SET.findall(placement.path(".xdc").read_text())
    balls = re.fullmatch(r"[a-z0-9]+-[a-z]+(\d+)-.*", device)
    if balls is None:
        raise TrebuchetError(f"device must be like xcku040-ffva1156-2-e, not {device!r}")
    side = math.ceil(math.sqrt(int(balls[1])))
    rows = [*_ROWS, *(a + b for a in _ROWS for b in _ROWS)][:side]
    places = ((signal, pin) for name, pin, signal in found if name == "LOC")
    for pin, signal in _users(places).items():
        ball = re.fullmatch(r"([A-Z]+)(\d+)", pin)
        if ball is None or ball[1] not in rows or not 1 <= int(ball[2]) <= side:
            raise TrebuchetError(
                f"{signal!r} is on pin {pin!r}, which the package of {device} does not have"
            )
    _check_ports(placement.path(".v").read_text(), placement.top, found)


def check_pins(placement):
    """Raise, naming signal and pin, if a pin does not exist on the package or is used twice.

    nextpnr packs a design of nothing but ports: it alone knows the packages.
    """
    places = _LOCATE.findall(placement.path(".lpf").read_text())
    users = _users(places)
    netlist = placement.path("_pins.json")
    ports = {
        signal: {"direction": "inout", "bits": [2 + i]} for i, signal in enumerate(users.values())
    }
    names = {
        signal: {"hide_name": 0, "attributes": {}, "bits": port["bits"]}
        for signal, port in ports.items()
    }
    module = {"attributes": {"top": "1"}, "ports": ports, "cells": {}, "netnames": names}
    netlist.write_text(json.dumps({"creator": "trebuchet", "modules": {"top": module}}))
    constraints = placement.path("_pins.lpf")
    constraints.write_text("".join(f'LOCATE COMP "{s}" SITE "{p}";\n' for s, p in places))
    words = placement.command("nextpnr-ecp5")
    for option, value in (("--json", netlist), ("--lpf", constraints)):
        words[words.index(option) + 1] = value.name
    del words[words.index("--textcfg") : words.index("--textcfg") + 2]
    try:
        placement.run([*words, "--pack-only"], "pins.log")
    except TrebuchetError as error:
        missing = re.search(
            r"IO pin '(.+?)(?:\$tr_io)?' constrained to pin '(.+?)', which does not exist for "
            r"package '(.+?)'",
            str(error),
        )
        if missing is None:
            raise
        signal, pin, package = missing.groups()
        raise TrebuchetError(
            f"{signal!r} is on pin {pin!r}, which the package {package} does not have"
        ) from error
    for path in (netlist, constraints):
        path.unlink()
