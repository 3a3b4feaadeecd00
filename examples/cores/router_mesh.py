#!/usr/bin/env python3
"""A mesh of four routers in LiteX: each endpoint sends to the next and checks what comes.

`python examples/cores/router_mesh.py` writes build/router_mesh/*.v. `good_N` counts the packets
that endpoint N got as they should be, and `bad_N` stays 0.
"""

from pathlib import Path

from litex.build.generic_platform import Pins
from litex.build.io import CRG
from litex.build.sim import SimPlatform
from litex.gen import LiteXModule
from migen import If, Signal
from trebuchet.litex import TrebuchetRouter

CLOCK, ENDPOINTS, BEATS = 100e6, 4, 8

IO = [("sys_clk", 0, Pins(1))]
IO += [(f"{what}_{n}", 0, Pins(32)) for what in ("good", "bad") for n in range(ENDPOINTS)]


class Sender(LiteXModule):
    """Offers packets of eight beats without a pause; a beat has its sender's number on top."""

    def __init__(self, sink, number):
        count, beat = Signal(24), Signal(3)
        self.comb += [
            sink.valid.eq(1),
            sink.data[:24].eq(count),
            sink.data[24:].eq(number),
            sink.last.eq(beat == BEATS - 1),
            sink.last_be.eq(sink.last << 3),
        ]
        self.sync += If(sink.ready, count.eq(count + 1), beat.eq(beat + 1))


class Checker(LiteXModule):
    """Takes beats of endpoint ``number``; counts good packets and wrong beats."""

    def __init__(self, source, number):
        self.good, self.bad = Signal(32), Signal(32)
        expected = Signal(24)
        wrong = (source.data[:24] != expected) | (source.data[24:] != number)
        self.comb += source.ready.eq(1)
        self.sync += If(
            source.valid,
            expected.eq(expected + 1),
            If(wrong | (source.last != (expected[:3] == BEATS - 1)), self.bad.eq(self.bad + 1)),
            If(source.last & ~wrong, self.good.eq(self.good + 1)),
        )


class Mesh(LiteXModule):
    def __init__(self, platform):
        self.crg = CRG(platform.request("sys_clk"))
        self.router = router = TrebuchetRouter(
            platform, CLOCK, topology="mesh", endpoints=ENDPOINTS, columns=2, width=32, vcs=1
        )
        for n in range(ENDPOINTS):
            to, of = (n + 1) % ENDPOINTS, (n - 1) % ENDPOINTS
            self.comb += router.dest[n][0].eq(to)
            self.add_module(f"sender{n}", Sender(router.send[n][0], n))
            self.add_module(f"checker{n}", checker := Checker(router.receive[n][0], of))
            self.comb += platform.request(f"good_{n}").eq(checker.good)
            self.comb += platform.request(f"bad_{n}").eq(checker.bad)


def main(folder="build/router_mesh"):
    """Write the design's Verilog; return the files."""
    platform = SimPlatform("mesh", IO)
    output = platform.get_verilog(Mesh(platform), name="mesh")
    path = Path(folder) / "mesh.v"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(output.main_source)
    return [path, *(Path(name) for name, *_ in platform.sources)]


if __name__ == "__main__":
    print(*main(), sep="\n")
