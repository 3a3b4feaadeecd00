"""A netlist whose names and order come from its structure, so that equal logic is placed equally.

Yosys names cells and nets by lines of files and by counting, and nextpnr breaks ties by the order
of names: with a comment more in the generated Verilog the Versa reached 69.2 instead of 64.8 MHz.
Here all names but those of ports and constraints are replaced, and everything is sorted. Two
netlists of the same structure become the same bytes, whatever their names and order were.

Order of cells: each bit of each port, by name, is followed back to the cell that drives it, and
that cell's inputs likewise, in the order of the cell's ports; a cell comes after those that it
depends on. A net has one driver, so no choice is left. Then follow cells that no port depends on
(a flash's clock pin, for example), sorted by what they depend on. Two of these that depend on the
same structure keep their given order; that they differ in what depends on *them* is not considered.

Reports of nextpnr are :func:`translated` back into the design's names, which are kept beside the
netlist.
"""

import json
import re
from collections import defaultdict

__all__ = ["Names", "canonical_constraints", "canonicalise", "constrained"]

#: Attributes that say where something was written, and how it was called there.
_ORIGIN = {"hdlname", "module_not_derived", "scopename", "src"}
#: Cells of Yosys that say the same.
_INFORMATION = "$scopeinfo"
#: Attributes of nets that place and route go by.
_OF_NETS = {"keep", "noglobal"}
_DIGITS = 6
_NAME = re.compile(rf"(?<![0-9A-Za-z])(cell|net)_(\d{{{_DIGITS}}})(?!\d)")


class Names:
    """Names that a design gave its cells and nets, by their canonical numbers.

    Attributes
    ----------
    cells, nets : list of str
        A net with several names has the one with the fewest modules, public before private ones;
        one without a name has none here either.
    """

    def __init__(self, cells, nets):
        self.cells, self.nets = list(cells), list(nets)

    @classmethod
    def read(cls, path):
        """The names in the file ``path``, which :meth:`write` wrote."""
        found = json.loads(path.read_text())
        return cls(found["cells"], found["nets"])

    def write(self, path):
        path.write_text(json.dumps({"cells": self.cells, "nets": self.nets}))

    def translated(self, text, in_json=False):
        """``text`` with the design's names; ``in_json``: within strings of JSON."""

        def name(match):
            kind, number = match.groups()
            names = self.cells if kind == "cell" else self.nets
            original = names[int(number)] if int(number) < len(names) else ""
            if not original:
                return match[0]
            return json.dumps(original)[1:-1] if in_json else original

        return _NAME.sub(name, text)


def constrained(constraints):
    """Names that the text of an LPF file refers to: of ports, nets and cells."""
    return set(re.findall(r'"([^"]+)"', constraints))


def canonical_constraints(text):
    """The lines of an LPF file, each once, sorted by what they constrain; comments left out.

    Lines about the same thing keep their order, of which the last may count.
    """
    lines = (line.partition("#")[0].rstrip() for line in text.splitlines())
    lines = list(dict.fromkeys(line for line in reversed(list(lines)) if line))[::-1]
    lines.sort(key=lambda line: line.split('"')[1] if line.count('"') > 1 else "")
    return "".join(f"{line}\n" for line in lines)


def canonicalise(module, keep=()):
    """The canonical form of a module, and the :class:`Names` that it had.

    Parameters
    ----------
    module : dict
        The top module, flat, of a netlist that Yosys wrote as JSON; it is not changed. Every bit of
        a port, and every pin of a cell, must have a number or be a constant.
    keep : set of str
        Names of nets and cells that constraints refer to, and that stay.

    Returns
    -------
    dict
        Cells ``cell_000000`` onwards and nets ``net_000000`` onwards, in order. Ports have their
        names. Nets are single bits with numbers from 2, which are also those of their names.
    Names
        By which reports are translated.
    """
    order = _Order(module)
    cells = module["cells"]
    ports = {name: module["ports"][name] for name in sorted(module["ports"])}
    bits, fixed = _numbers(ports, [cells[name] for name in order.names])

    def renamed(pins):
        return [bits.get(bit, bit) for bit in pins]

    made = {
        "attributes": _attributes(module.get("attributes", {})),
        "ports": {name: {**port, "bits": renamed(port["bits"])} for name, port in ports.items()},
        "cells": {},
        "netnames": {},
    }
    for number, name in enumerate(order.names):
        cell = cells[name]
        made["cells"][name if name in keep else f"cell_{number:0{_DIGITS}}"] = {
            "hide_name": 0,
            "type": cell["type"],
            "parameters": dict(sorted(cell.get("parameters", {}).items())),
            "attributes": _attributes(cell.get("attributes", {})),
            "port_directions": dict(sorted(cell.get("port_directions", {}).items())),
            "connections": {
                port: renamed(pins) for port, pins in sorted(cell["connections"].items())
            },
        }
    names, attributes = _names_of_nets(module.get("netnames", {}), keep)
    for name, port in made["ports"].items():
        made["netnames"][name] = {"hide_name": 0, "bits": port["bits"], "attributes": {}}
    for bit, number in bits.items():
        kept = names[bit][1] if bit in names and names[bit][1] in keep else None
        if bit not in fixed:
            name = kept or f"net_{number - 2:0{_DIGITS}}"
            net = {"hide_name": 0, "bits": [number], "attributes": attributes.get(bit, {})}
            made["netnames"][name] = net
    return made, Names(order.names, [names[bit][1] if bit in names else "" for bit in bits])


def _numbers(ports, cells):
    """New numbers of all bits, those of ports first; and which belong to ports."""
    bits = {}
    for port in ports.values():
        for bit in port["bits"]:
            if isinstance(bit, int):
                bits.setdefault(bit, len(bits) + 2)
    fixed = set(bits)
    for cell in cells:
        for _, pins in sorted(cell["connections"].items()):
            for bit in pins:
                if isinstance(bit, int):
                    bits.setdefault(bit, len(bits) + 2)
    return bits, fixed


def _attributes(found):
    return {name: found[name] for name in sorted(found) if name not in _ORIGIN}


def _names_of_nets(netnames, keep):
    """Of each bit: its best name, as a pair of which the second is the name; and its attributes."""
    names, attributes = {}, defaultdict(dict)
    for name, net in netnames.items():
        offset = net.get("offset", 0)
        for k, bit in enumerate(net["bits"]):
            whole = len(net["bits"]) == 1 and not offset
            full = name if whole else f"{name}[{k + offset}]"
            rank = full not in keep, net.get("hide_name", 0), full.count("."), len(full), full
            if bit not in names or rank < names[bit][0]:
                names[bit] = rank, full
            for attribute in _OF_NETS & net.get("attributes", {}).keys():
                attributes[bit][attribute] = net["attributes"][attribute]
    return names, {bit: dict(sorted(found.items())) for bit, found in attributes.items()}


class _Order:
    """Canonical order of a module's cells: ``names``, as they were called."""

    def __init__(self, module):
        self.cells = {
            name: cell for name, cell in module["cells"].items() if cell["type"] != _INFORMATION
        }
        self.own, self.pins = {}, {}
        drivers, readers = defaultdict(list), defaultdict(set)
        for name, cell in self.cells.items():
            directions = cell.get("port_directions", {})
            inputs = []
            for port, bits in sorted(cell["connections"].items()):
                direction = directions.get(port, "input")
                for k, bit in enumerate(bits):
                    if direction != "input":
                        drivers[bit].append((name, port, k))
                    if direction != "output":
                        readers[bit].add(name)
                        inputs.append(bit)
            self.pins[name] = inputs
            self.own[name] = json.dumps(
                [cell["type"], cell.get("parameters", {}), _attributes(cell.get("attributes", {}))],
                sort_keys=True,
            )
        for bit, found in drivers.items():
            drivers[bit] = sorted(found, key=lambda pin: (self.own[pin[0]], *pin[1:]))
        self.drivers = {bit: found for bit, found in drivers.items() if isinstance(bit, int)}
        self.ports = {
            bit: (name, k)
            for name, port in sorted(module["ports"].items(), reverse=True)
            for k, bit in enumerate(port["bits"])
        }
        self.numbers = {}
        for _, port in sorted(module["ports"].items()):
            for bit in port["bits"]:
                for driver in self.drivers.get(bit, ()):
                    self._visit(driver[0], self.numbers)
        self._visit_rest(readers)
        self.names = list(self.numbers)

    def _visit(self, cell, numbers, known=()):
        """Number ``cell`` after all that it depends on and has no number, nor is in ``known``."""
        if cell in numbers or cell in known:
            return
        under_way = {cell}
        stack = [(cell, self._before(cell))]
        while stack:
            cell, before = stack[-1]
            for other in before:
                if other not in under_way and other not in numbers and other not in known:
                    under_way.add(other)
                    stack.append((other, self._before(other)))
                    break
            else:
                numbers[cell] = len(numbers)
                stack.pop()

    def _before(self, cell):
        for bit in self.pins[cell]:
            for driver in self.drivers.get(bit, ()):
                yield driver[0]

    def _visit_rest(self, readers):
        """Number the cells that no port depends on: first those that no other cell depends on."""
        rest = [name for name in self.cells if name not in self.numbers]
        driven = {
            pin[0] for bit, pins in self.drivers.items() for pin in pins if readers[bit] - {pin[0]}
        }
        for batch in ([n for n in rest if n not in driven], [n for n in rest if n in driven]):
            batch = [name for name in batch if name not in self.numbers]
            known = dict(self.numbers)
            for name in sorted(batch, key=lambda name: self._signature(name, known)):
                self._visit(name, self.numbers)

    def _signature(self, cell, known):
        """What ``cell`` depends on, as text; cells in ``known`` by their numbers."""
        here = {}
        self._visit(cell, here, known)

        def source(bit):
            if bit in self.ports:
                return "port", *self.ports[bit]
            found = [
                ("known", known[name], *pin) if name in known else ("here", here[name], *pin)
                for name, *pin in self.drivers.get(bit, ())
                if name in known or name in here
            ]
            return bit if isinstance(bit, str) else found

        return json.dumps([[self.own[name], [*map(source, self.pins[name])]] for name in here])
