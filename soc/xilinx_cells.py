"""What cells of Yosys' ``synth_xilinx`` take of an UltraScale or UltraScale+ FPGA.

A LUT is a LUT6 of any number of inputs, a LUT RAM or shift register the LUTs that it takes; CARRY8
is not counted, since it comes with the LUTs that feed it.
"""

__all__ = ["COSTS", "FREE", "resources"]

#: Cost of a cell by resource; cells that are not named cost nothing.
COSTS: dict[str, dict[str, float]] = {
    "LUT6": {
        **{f"LUT{n}": 1 for n in range(1, 7)},
        **{"INV": 1, "SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1},
        **{"RAM16X1S": 1, "RAM32X1S": 1, "RAM64X1S": 1, "RAM32X1D": 2, "RAM64X1D": 2},
        **{"RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8},
        **{"RAM128X1D": 4, "RAM128X1S": 2, "RAM256X1S": 4, "RAM256X1D": 8, "RAM512X1S": 8},
    },
    "FF": {name: 1 for name in ("FDRE", "FDSE", "FDCE", "FDPE")},
    "BRAM36": {"RAMB36E2": 1, "RAMB18E2": 0.5},
    "DSP": {"DSP48E2": 1},
}

#: Cells that cost nothing, or that come with others that are counted.
FREE = {"CARRY8", "CARRY4", "MUXF7", "MUXF8", "MUXF9", "BUFG", "VCC", "GND", "$scopeinfo"}


def resources(cells: dict[str, int]) -> dict[str, float]:
    """Each resource of :data:`COSTS` that so many ``cells`` by type take."""
    return {
        resource: sum(cost * cells.get(name, 0) for name, cost in costs.items())
        for resource, costs in COSTS.items()
    }
