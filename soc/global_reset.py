"""Resets of thousands of flip-flops onto the ECP5's global network.

nextpnr promotes clocks alone. A reset with twelve thousand sinks in the general routing takes wires
everywhere, and what it drives by way of a LUT is the slowest path of the design: two crossings of
the chip. The global network reaches the reset inputs of all slices as well as their clocks
(Lattice FPGA-TN-02200, ECP5 and ECP5-5G sysCLOCK PLL/DLL usage guide, "Primary Clock Sources").
"""

from collections import Counter

__all__ = ["FLIP_FLOPS", "NETS", "promote_resets"]

#: Flip-flops that make a reset worth a global net.
FLIP_FLOPS = 1000
#: Global nets for resets: of the 16, half reach reset inputs, and clocks may take six of these.
NETS = 2


def promote_resets(module):
    """Put a buffer of the global network (DCCA) before the flip-flops of the largest resets.

    Other sinks of such a net keep it as it is: LUTs cannot be reached from a global net, and pins'
    cells are better off with the same wire as before.

    Parameters
    ----------
    module : dict
        The top module of a netlist that Yosys wrote as JSON, after mapping; it is changed.

    Returns
    -------
    int
        Nets that were promoted, at most :data:`NETS`.
    """
    cells = module["cells"]
    resets = Counter()
    for cell in cells.values():
        bit = _reset_of(cell)
        if isinstance(bit, int):
            resets[bit] += 1
    # Ties by number, so that the same netlist gives the same result everywhere.
    largest = sorted(resets.items(), key=lambda item: (-item[1], item[0]))[:NETS]
    chosen = [bit for bit, count in largest if count >= FLIP_FLOPS]
    free = 1 + max(_bits(module), default=0)
    buffered = {bit: free + k for k, bit in enumerate(chosen)}
    for cell in cells.values():
        bit = _reset_of(cell)
        if bit in buffered:
            cell["connections"]["LSR"] = [buffered[bit]]
    for k, (bit, out) in enumerate(buffered.items()):
        cells[f"global_reset{k}"] = {
            "hide_name": 0,
            "type": "DCCA",
            "parameters": {},
            "attributes": {},
            "port_directions": {"CLKI": "input", "CE": "input", "CLKO": "output"},
            "connections": {"CLKI": [bit], "CE": ["1"], "CLKO": [out]},
        }
        net = {"hide_name": 0, "bits": [out], "attributes": {}}
        module["netnames"][f"global_reset{k}"] = net
    return len(chosen)


def _reset_of(cell):
    """The net of a flip-flop's reset input; None if the cell is none, or has none."""
    if cell["type"] != "TRELLIS_FF":
        return None
    bits = cell["connections"].get("LSR", [])
    return bits[0] if bits else None


def _bits(module):
    """Numbers of all nets."""
    for cell in module["cells"].values():
        for bits in cell["connections"].values():
            yield from (bit for bit in bits if isinstance(bit, int))
    for net in module["netnames"].values():
        yield from (bit for bit in net["bits"] if isinstance(bit, int))
