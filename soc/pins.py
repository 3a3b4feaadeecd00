"""Are the pins of a board's constraints there? Asked of nextpnr, which takes a second."""

import json
import re

from ..models.errors import TrebuchetError

__all__ = ["check_pins"]

_LOCATE = re.compile(r'^LOCATE COMP "([^"]+)" SITE "([^"]+)";', re.MULTILINE)


def check_pins(placement):
    """Raise, naming signal and pin, if a pin does not exist on the package or is used twice.

    nextpnr packs a design of nothing but ports: it alone knows the packages.
    """
    places = _LOCATE.findall(placement.path(".lpf").read_text())
    users = {}
    for signal, pin in places:
        other = users.setdefault(pin, signal)
        if other != signal:
            raise TrebuchetError(f"pin {pin} is used twice, by {other!r} and by {signal!r}")
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
