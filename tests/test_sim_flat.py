"""The flat tops of Verilator models: their reset, their ports, their Verilog."""

import re

from amaranth import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from trebuchet.sim.flat import FlatTop


class Counter(wiring.Component):
    """Counts clocks, and words that it takes; one of its two memories begins with zeros."""

    i: In(stream.Signature(4))
    clocks: Out(8)
    taken: Out(8)
    word: Out(data.StructLayout({"low": 3, "high": 5}))
    nothing: Out(0)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.clocks.eq(self.clocks + 1)
        m.d.comb += self.i.ready.eq(1)
        with m.If(self.i.valid):
            m.d.sync += self.taken.eq(self.taken + 1)
        ports = []
        for name, init in (("zeros", [0] * 4), ("numbers", [0, 7, 0, 0])):
            m.submodules[name] = memory = Memory(shape=8, depth=4, init=init)
            ports.append(memory.read_port())
            write = memory.write_port()
            m.d.comb += [ports[-1].addr.eq(self.clocks), write.addr.eq(self.taken)]
            m.d.comb += [write.data.eq(self.clocks), write.en.eq(self.i.valid)]
        m.d.comb += self.word.as_value().eq(ports[0].data ^ ports[1].data)
        return m


def top():
    counter = Counter()
    flat = FlatTop(counter)
    for name in ("clocks", "taken", "word", "nothing"):
        flat.port(name, getattr(counter, name), driven=True)
    flat.stream("i", counter.i, (), driven=False)
    return flat


def test_reset_ends_a_cycle_after_the_ports():
    """The design starts in reset, and is in reset again a cycle after ``rst`` rose."""
    flat = top()
    clocks = flat.dut.clocks
    seen = []

    async def bench(ctx):
        for rst in (1, 1, 0, 0, 0, 0, 1, 1, 0, 0):
            ctx.set(flat.rst, rst)
            for level in (0, 1):
                ctx.set(flat.clk, level)
                await ctx.delay(1e-9)
            seen.append(ctx.get(clocks))

    simulator = Simulator(flat)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [0, 0, 0, 1, 2, 3, 4, 0, 0, 1]


def test_ports_and_verilog():
    """``rst`` goes to one register and nowhere else; contents stay, but for memories of zeros."""
    flat = top()
    text = flat.verilog("thing")
    widths = {port.name: len(port) for port in flat.ports}
    assert widths == {
        "clk": 1,
        "rst": 1,
        "clocks": 8,
        "taken": 8,
        "word": 8,
        "nothing": 1,
        "i_valid": 1,
        "i_ready": 1,
    }
    (thing,) = re.findall(r"^module thing\(.*?^endmodule", text, re.M | re.S)
    body = thing.partition("input rst;")[2]
    # Not a port of a submodule, nor another signal of that name, which is written \rst$1.
    assert re.findall(r".*(?<![.\\])\brst\b.*", body) == ["  wire rst;", "    reset <= rst;"]
    assert "[1] = 8'h07;" in text
    assert len(re.findall(r"\[\d\] = 8'h", text)) == 4


class Partly(wiring.Component):
    """Half of its output is a constant."""

    i: In(8)
    o: Out(data.StructLayout({"fixed": 8, "free": 8}))

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.fixed.eq(0xA5)
        with m.If(self.i[0]):
            m.d.comb += self.o.free.eq(self.i)
        return m


def test_constants_are_set_without_an_event():
    """``always @*`` around a constant waits for ever in Verilator."""
    partly = Partly()
    flat = FlatTop(partly)
    flat.port("i", partly.i, driven=False)
    flat.port("o", partly.o, driven=True)
    text = flat.verilog("top")
    assert re.search(r"  initial\n    o ?\[7:0\] = 8'ha5;", text), text
    assert not re.search(r"always @\*\n    \S+(?: ?\[[0-9:]+\])? = \d+'[hb]", text)
