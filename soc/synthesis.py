"""LiteX's Yosys script for ECP5, changed so that logic is mapped for area where clocks allow it.

Left alone, ``synth_ecp5`` maps everything for the shortest delay, which takes more LUTs. ABC9 knows
one clock period for all; so what feeds registers of a clock faster than the system's is put aside
and mapped for the fewest levels of LUTs.
"""

import re

__all__ = [
    "READ_AGAIN",
    "clocks_faster_than",
    "map_for_area",
    "plain_verilog",
    "with_local_sources",
]

#: Adders and comparisons of so few bits cost less as plain LUTs than as a carry chain, whose ends
#: alone take four (measured: 1,300 of 40,000 LUTs; a few bits more and timing suffers).
_SOFT_ADDER_BITS = 9
#: Share of the clock period that logic, and wires as Yosys guesses them, may take before placement.
#: Wires take the rest, and more of the longest ways than Yosys guesses. With half of the period an
#: i5 reached 57 MHz, with a third 67, of as many LUTs; with a fifth no more.
_LOGIC_SHARE = 0.3
#: Guessed delay of a wire between two LUTs, in ps.
_WIRE_DELAY = 300
#: What logic consists of before it is mapped.
_GATES = ",".join(
    f"$_{gate}_"
    for gate in ("NOT", "AND", "NAND", "OR", "NOR", "XOR", "XNOR", "ANDNOT", "ORNOT", "MUX")
)
#: The design written and read again as it is. Without this abc9 ends of some netlists with an
#: assertion on what `submod` has left in memory (Yosys 0.70, kernel/rtlil.cc).
READ_AGAIN = """\
write_rtlil before_abc9.il
design -reset
read_verilog -lib -specify +/ecp5/cells_sim.v +/ecp5/cells_bb.v
read_rtlil -nooverwrite before_abc9.il
"""


#: A comment that is a directive to a tool begins with one of these words.
_DIRECTIVES = r"(?!\s*(?:synopsys|synthesis|pragma|verilator|cadence|xilinx)\b)"
_COMMENT = rf"//{_DIRECTIVES}[^\n]*|/\*{_DIRECTIVES}.*?\*/"
#: Where Amaranth found what.
_SOURCE_ATTRIBUTE = r'\(\* src = "[^"\n]*" \*\)'
_WITHOUT_MEANING = re.compile(rf"{_COMMENT}|{_SOURCE_ATTRIBUTE}", re.DOTALL)
#: Blanks, with what has no meaning; then strings, names that begin with a backslash, directives.
_TOKEN = re.compile(
    rf"(?P<blank>(?:\s|{_COMMENT}|{_SOURCE_ATTRIBUTE})+)"
    r'|"(?:\\.|[^"\\\n])*"|\\\S+|//[^\n]*|/\*.*?\*/',
    re.DOTALL,
)


def plain_verilog(text):
    """``text``, Verilog, without comments, blank lines, source locations and indentation.

    That differs between builds and machines, and means nothing to tools; but Yosys names cells by
    the lines of its input. Directives to tools in comments are kept, and so are line breaks between
    words, since a compiler directive ends with its line.
    """

    def plain(token):
        if token["blank"] is None:
            return token[0]
        return "\n" if "\n" in _WITHOUT_MEANING.sub("", token[0]) else " "

    return _TOKEN.sub(plain, text).strip() + "\n"


def with_local_sources(script, folder):
    """``script``, reading all its Verilog from ``folder``, where it is made the same everywhere.

    Yosys names cells by file and line, and the order of names decides between equal choices when
    logic is mapped. So files are read by their plain names, from copies that are
    :func:`plain_verilog`.
    """

    def localised(match):
        path = folder / match["path"]
        (folder / path.name).write_text(plain_verilog(path.read_text()))
        return f"read_verilog {match['level'] or ''}{path.name}"

    return re.sub(
        r"^read_verilog (?P<level>-sv )?(?P<path>\S+)$", localised, script, flags=re.MULTILINE
    )


def clocks_faster_than(constraints, hertz):
    """Ports that are clocks faster than ``hertz``, by the text of an LPF file."""
    found = re.findall(r'^FREQUENCY PORT "([^"]+)" ([0-9.]+) MHz;', constraints, re.MULTILINE)
    return [port for port, mhz in found if float(mhz) * 1e6 > hertz]


def map_for_area(script, top, sys_clk_hz, fast_clocks=()):
    """The changed script.

    Parameters
    ----------
    script : str
        Yosys script with one line ``synth_ecp5 …``.
    top : str
        Name of the top module.
    sys_clk_hz : float
        Frequency of the clock that most of the logic has.
    fast_clocks : sequence of str
        Nets that are faster clocks; those that are none are passed over.
    """
    command = re.search(r"^synth_ecp5 .*$", script, re.MULTILINE).group()
    delay = round(1e12 / sys_clk_hz * _LOGIC_SHARE)
    return script.replace(
        command,
        f"""{command} -run begin:map_gates
techmap -map +/techmap.v t:$alu r:Y_WIDTH<={_SOFT_ADDER_BITS} %i
opt -fast
{command} -run map_gates:map_luts
{_map_fast(fast_clocks)}abc9 -maxlut 4 -W {_WIRE_DELAY} -D {delay} {top}
flatten -noscopeinfo
clean
{command} -run map_cells:""",
    )


def _map_fast(clocks):
    """Lines that map what feeds the registers of ``clocks``."""
    if not clocks:
        return ""
    nets = " ".join(["select -set clocks", *(f"w:{net}" for net in clocks)])
    return f"""{nets}
select -set registers @clocks %co1:+TRELLIS_FF[CLK] c:* %i
select -set inputs @registers %ci1:-TRELLIS_FF[CLK] w:* %i
select -set logic @inputs %ci*:+{_GATES} c:* %i
submod -name fast_logic @logic
abc -lut 4 fast_logic
{READ_AGAIN}"""
