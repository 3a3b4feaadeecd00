"""Are the pins of a board's constraints there? Asked of nextpnr, which takes a second.

Of the vendor's packages only the grid of balls is known, from the device's name.
"""

import json
import math
import re

from ..models.errors import TrebuchetError

__all__ = ["check_pins", "check_xdc"]

_LOCATE = re.compile(r'^LOCATE COMP "([^"]+)" SITE "([^"]+)";', re.MULTILINE)
_LOC = re.compile(r"^set_property LOC (\S+) \[get_ports \{([^}]+)\}\]", re.MULTILINE)
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


def check_xdc(text, device):
    """Raise, naming signal and pin, if constraints ``text`` use a pin twice, or one off the grid.

    The package of a ``device`` like ``xcku040-ffva1156-2-e`` has 1156 balls in a square, whose rows
    are A to AP; on larger ones the corners are missing. Which balls are I/O only Vivado knows.
    """
    balls = re.fullmatch(r"[a-z0-9]+-[a-z]+(\d+)-.*", device)
    if balls is None:
        raise TrebuchetError(f"device must be like xcku040-ffva1156-2-e, not {device!r}")
    side = math.ceil(math.sqrt(int(balls[1])))
    rows = [*_ROWS, *(a + b for a in _ROWS for b in _ROWS)][:side]
    for pin, signal in _users((signal, pin) for pin, signal in _LOC.findall(text)).items():
        found = re.fullmatch(r"([A-Z]+)(\d+)", pin)
        if found is None or found[1] not in rows or not 1 <= int(found[2]) <= side:
            raise TrebuchetError(
                f"{signal!r} is on pin {pin!r}, which the package of {device} does not have"
            )


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
