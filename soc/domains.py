"""Which signals of a netlist cross from one clock to another, and how.

The netlist is Yosys's JSON of a whole SoC, flattened and not yet mapped (:func:`read_netlist`). A
crossing is a register whose next value depends on a register of another clock. Of these kinds are
known to be safe:

``synchroniser``
    One bit, straight from a register to two in a row of the other clock, with nothing between them
    and nobody else at the first.
``gray``
    The same with several bits, which :data:`GRAY` names: pointers of which one bit changes at a
    time.
``memory``
    A word of a memory that the other clock writes, at an address of the own clock; between the two
    clocks pointers cross as ``gray``, both ways.
``reset``
    The output of a synchroniser of a reset, which is set asynchronously.
``steady``
    A register that stays as it is while the other clock looks at it; :data:`STEADY` names it and
    says why.

All others are of no known kind, and a fault until somebody has thought about them.
"""

import dataclasses
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

__all__ = ["GRAY", "STEADY", "CrossingSignal", "Netlist", "read_netlist"]

#: Registers of several bits that change one at a time.
GRAY = (r"_crossing_pointer\d+$", r"graycounter\d+_q$")
#: Registers that stay as they are while the other clock looks at them, and why.
STEADY = {
    "ethphy_status": "LiteEth's link status from the PHY, for people to read",
    "rgmii_status": "the same of a board whose PHY has that name",
    "rmii_speed": "LiteEth's choice of 10 or 100 Mbit/s, which nobody changes while frames pass",
}

#: Of primitives that are registers: clock, inputs, outputs. Pads are no register.
_PRIMITIVES = {
    "FD1S3BX": ("CK", ("D",), ("Q",)),
    "IFS1P3BX": ("SCLK", ("D",), ("Q",)),
    "OFS1P3BX": ("SCLK", ("D",), ("Q",)),
    "IDDRX1F": ("SCLK", ("D",), ("Q0", "Q1")),
    "ODDRX1F": ("SCLK", ("D0", "D1"), ("Q",)),
}
_REGISTER_INPUTS = ("D", "EN", "SRST")


@dataclass(frozen=True)
class CrossingSignal:
    """A register that takes what another clock's registers give.

    Attributes
    ----------
    target : str
        Name of the register.
    sources : tuple of str
        Names of the registers, or memories, of other clocks.
    clocks : tuple of str
        The target's clock, then those of the sources.
    kind : str or None
        See above; None: no known one.
    """

    target: str
    sources: tuple
    clocks: tuple
    kind: str | None


@dataclass(frozen=True)
class _Register:
    cell: str
    clock: int
    inputs: tuple
    outputs: tuple
    data: tuple  # D bits, one for each output, if it is a plain register
    resets: bool = False


class Netlist:
    """Registers, memories and logic of a flat module."""

    def __init__(self, module):
        self._names = {}
        for name, net in module["netnames"].items():
            for bit in net["bits"]:
                if isinstance(bit, int):
                    known = self._names.get(bit)
                    if known is None or (net["hide_name"], len(name)) < known[0]:
                        self._names[bit] = ((net["hide_name"], len(name)), name)
        self.registers, self._drivers, self._sinks = [], {}, defaultdict(list)
        self._of, self._memory_of, self._clocks = {}, {}, {}
        for name, cell in module["cells"].items():
            self._add(name, cell)

    def name(self, bit):
        """The shortest name that somebody has given the net."""
        return self._names[bit][1].lstrip("\\") if bit in self._names else f"net {bit}"

    def _add(self, name, cell):
        kind, ports = cell["type"], cell["connections"]
        if kind == "$mem_v2":
            self._add_memory(name, cell)
            return
        if kind in _PRIMITIVES:
            clock, ins, outs = _PRIMITIVES[kind]
            inputs = tuple(bit for port in ins for bit in ports.get(port, ()))
            outputs = tuple(bit for port in outs for bit in ports.get(port, ()))
            data = inputs if len(inputs) == len(outputs) else ()
            self._add_register(
                _Register(name, ports[clock][0], inputs, outputs, data, resets=kind == "FD1S3BX")
            )
            return
        if re.fullmatch(r"\$(a|s|al)?dffs?r?c?e?", kind):
            inputs = tuple(bit for port in _REGISTER_INPUTS for bit in ports.get(port, ()))
            data, outputs = tuple(ports["D"]), tuple(ports["Q"])
            self._add_register(_Register(name, ports["CLK"][0], inputs, outputs, data))
            return
        directions = cell.get("port_directions")
        if directions is None:  # a pad, a PLL, …: neither register nor logic
            return
        inputs = [b for p, bits in ports.items() if directions[p] != "output" for b in bits]
        known = kind.startswith("$")
        for port, bits in ports.items():
            if directions[port] == "output":
                for bit in bits:
                    self._drivers[bit] = inputs if known else []
        for bit in inputs if known else ():
            self._sinks[bit].append(None)

    def _add_register(self, register):
        self.registers.append(register)
        for bit in register.outputs:
            self._of[bit] = register
        for place, bit in enumerate(register.inputs):
            self._sinks[bit].append((register, place))

    def _add_memory(self, name, cell):
        """A read port is logic on the memory, which its writers' clocks change.

        Registers at its data or address are cells of their own: ``memory_dff`` has not run.
        """
        ports, parameters = cell["connections"], cell["parameters"]
        width = int(parameters["WIDTH"], 2)
        reads, writes = (int(parameters[f"{way}_PORTS"], 2) for way in ("RD", "WR"))
        address = int(parameters["ABITS"], 2)
        writers = {bit for bit in ports["WR_CLK"] if isinstance(bit, int)} if writes else set()
        memory = parameters["MEMID"].lstrip("\\")
        for port in ("RD_ADDR", "WR_EN", "WR_ADDR", "WR_DATA"):
            for bit in ports[port]:
                self._sinks[bit].append(None)
        for k in range(reads):
            out = tuple(ports["RD_DATA"][k * width : (k + 1) * width])
            at = tuple(ports["RD_ADDR"][k * address : (k + 1) * address])
            for bit in out:
                self._drivers[bit] = at
                self._memory_of[bit] = (memory, frozenset(writers))
        # Writing, too, is to be done by signals of the writer's clock.
        for k in range(writes):
            inputs = tuple(
                bit
                for port, size in (("WR_EN", width), ("WR_ADDR", address), ("WR_DATA", width))
                for bit in ports[port][k * size : (k + 1) * size]
            )
            self._add_register(_Register(name, ports["WR_CLK"][k], inputs, (), ()))

    def _parents(self, bit):
        return () if bit in self._of else self._drivers.get(bit, ())

    def clocks(self, bit):
        """Clocks of the registers, and of the writers of memories, that a net depends on."""
        memo, stack = self._clocks, [bit]
        while stack:
            at = stack[-1]
            if at in memo:
                stack.pop()
                continue
            parents = self._parents(at)
            missing = [other for other in parents if other not in memo]
            if missing:
                stack += missing
                continue
            memo[at] = self._clocks_of(at).union(*(memo[other] for other in parents))
            stack.pop()
        return memo[bit]

    def sources(self, bit, clock):
        """Bits of registers and memories of clocks other than ``clock`` that a net depends on."""
        stack, seen, found = [bit], set(), set()
        while stack:
            at = stack.pop()
            if at in seen or not self.clocks(at) - {clock}:
                continue
            seen.add(at)
            if self._clocks_of(at) - {clock}:
                found.add(at)
            stack += self._parents(at)
        return found

    def _clocks_of(self, bit):
        """Clocks at which a source itself changes; none of what is only logic."""
        clocks = set()
        if bit in self._of:
            clocks.add(self._of[bit].clock)
        if bit in self._memory_of:
            clocks |= self._memory_of[bit][1]
        return frozenset(clocks)

    def crossings(self):
        """Every :class:`CrossingSignal`, by the names of target and sources."""
        found = {}
        for register in self.registers:
            foreign = set()
            for bit in set(register.inputs):
                if self.clocks(bit) - {register.clock}:
                    foreign |= self.sources(bit, register.clock)
            if foreign:
                crossing = self._crossing(register, foreign)
                found[crossing.target, crossing.sources] = crossing
        pairs = {crossing.clocks for crossing in found.values() if crossing.kind == "gray"}
        checked = [self._with_pointers(crossing, pairs) for crossing in found.values()]
        return sorted(checked, key=lambda crossing: crossing.target)

    @staticmethod
    def _with_pointers(crossing, pairs):
        """A memory is of a known kind only if pointers cross between its clocks, both ways."""
        both = crossing.clocks in pairs and crossing.clocks[::-1] in pairs
        if crossing.kind == "memory" and not both:
            return dataclasses.replace(crossing, kind=None)
        return crossing

    def _crossing(self, register, foreign):
        sources = sorted({self._source_name(bit) for bit in foreign})
        clocks = set().union(*(self._clocks_of(bit) for bit in foreign)) - {register.clock}
        names = (self.name(register.clock), *sorted(map(self.name, clocks)))
        target = self.name(register.outputs[0]) if register.outputs else register.cell
        kind = self._kind(register, foreign, sources)
        return CrossingSignal(target, tuple(sources), names, kind)

    def _source_name(self, bit):
        if bit in self._memory_of:
            return self._memory_of[bit][0]
        return self.name(bit)

    def _kind(self, register, foreign, sources):
        if all(bit in self._of and self._of[bit].resets for bit in foreign):
            return "reset"
        if all(source in STEADY for source in sources):
            return "steady"
        if all(bit in self._memory_of for bit in foreign):
            return "memory"
        if not self._is_synchroniser(register, foreign):
            return None
        if len(register.outputs) == 1:
            return "synchroniser"
        gray = all(any(re.search(p, source) for p in GRAY) for source in sources)
        return "gray" if gray else None

    def _is_synchroniser(self, register, foreign):
        """Two registers in a row, straight from the source, and nobody else at the first one."""
        if not set(register.data) >= foreign or not set(register.inputs) <= set(register.data):
            return False
        for bit in register.outputs:
            sinks = self._sinks.get(bit, [])
            if len(sinks) != 1 or sinks[0] is None:
                return False
            second, place = sinks[0]
            if second.clock != register.clock or place >= len(second.data):
                return False
        return all(bit in self._of for bit in foreign)


def read_netlist(path, top):
    """The :class:`Netlist` of module ``top`` in Yosys's JSON."""
    return Netlist(json.loads(Path(path).read_text())["modules"][top])
