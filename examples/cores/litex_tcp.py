#!/usr/bin/env python3
"""A LiteX SoC with the TCP engine and a service of its own: a greeting on port 13.

`python examples/cores/litex_tcp.py` writes build/litex_tcp/*.v. Frames go to and come from pins,
for a simulation; on a board they come from `mac = TrebuchetMac(phy)`, and the loop at the end of
the SoC is `self.comb += [mac.source.connect(tcp.rx), tcp.tx.connect(mac.sink)]`.
"""

from pathlib import Path

from litex.build.generic_platform import Pins
from litex.build.io import CRG
from litex.build.sim import SimPlatform
from litex.gen import FSM, LiteXModule, NextState, NextValue
from litex.soc.integration.soc_core import SoCCore
from migen import Array, Case, If, Signal
from trebuchet.litex import TrebuchetTcp

CLOCK, SESSIONS = 50e6, 8
GREETING = b"Hello from hardware.\r\n".ljust(24)
OPEN, DATA, EOF, SENT, CLOSED = range(5)

FRAME = (("data", 32), ("last_be", 4), ("error", 4), ("last", 1), ("valid", 1), ("ready", 1))
IO = [("sys_clk", 0, Pins(1))]
IO += [(f"{way}_{name}", 0, Pins(width)) for way in ("rx", "tx") for name, width in FRAME]


class Greeter(LiteXModule):
    """Sends the greeting on each new connection and closes it; reads and forgets what comes."""

    def __init__(self, service, addr):
        event, tx, free = service.event, service.tx, service.free
        got = {name: Signal.like(getattr(event, name)) for name in ("session", "position")}
        sent, over = (Array(Signal() for _ in range(SESSIONS)) for _ in range(2))
        session = got["session"]
        self.comb += [
            tx.session.eq(session), tx.addr.eq(addr), tx.length.eq(len(GREETING)),
            tx.push.eq(1), tx.close.eq(1),
            free.session.eq(session), free.position.eq(got["position"]),
        ]  # fmt: skip
        self.fsm = fsm = FSM(reset_state="EVENT")
        begin = {
            OPEN: [NextValue(sent[event.session], 0), NextValue(over[event.session], 0)],
            SENT: [NextValue(sent[event.session], 1), NextState("OVER")],
            CLOSED: [NextValue(over[event.session], 1), NextState("OVER")],
            DATA: NextState("CONSUME"),
        }
        begin[OPEN].append(NextState("POST"))
        take = [NextValue(signal, getattr(event, name)) for name, signal in got.items()]
        fsm.act("EVENT", event.ready.eq(1), If(event.valid, *take, Case(event.kind, begin)))
        fsm.act("POST", tx.valid.eq(1), If(tx.ready, NextState("EVENT")))
        fsm.act("CONSUME", free.valid.eq(1), If(free.ready, NextState("EVENT")))
        # The engine may use a number again when both its last answers have been taken.
        fsm.act("OVER", NextState("EVENT"), If(sent[session] & over[session], NextState("RELEASE")))
        fsm.act("RELEASE", free.valid.eq(1), free.release.eq(1), If(free.ready, NextState("EVENT")))


class Soc(SoCCore):
    def __init__(self, platform):
        words = [int.from_bytes(GREETING[i : i + 4], "little") for i in range(0, 24, 4)]
        super().__init__(
            platform, CLOCK, cpu_type=None, with_uart=False, with_timer=False, ident="greeter",
            integrated_sram_size=SESSIONS << 12,
        )  # fmt: skip
        self.add_rom("greeting", origin=0x2000_0000, size=64, contents=words)
        self.crg = CRG(platform.request("sys_clk"))
        self.tcp = tcp = TrebuchetTcp(
            platform, CLOCK, sessions=SESSIONS, ports=[13], segment_log2=12, mss=1460,
            pool_base=self.mem_map["sram"], ip="192.0.2.2", enable=True,
        )  # fmt: skip
        self.bus.add_master("tcp", master=tcp.bus)
        self.greeter = Greeter(tcp.services[0], 0x2000_0000)
        for way, end in (("rx", tcp.rx), ("tx", tcp.tx)):
            for name, _ in FRAME:
                pin, signal = platform.request(f"{way}_{name}"), getattr(end, name)
                inward = (way == "rx") != (name == "ready")
                self.comb += signal.eq(pin) if inward else pin.eq(signal)


def main(folder="build/litex_tcp"):
    """Write the SoC's Verilog; return the files."""
    platform = SimPlatform("greeter", IO)
    soc = Soc(platform)
    soc.finalize()
    output = platform.get_verilog(soc, name="greeter")
    texts = {"greeter.v": output.main_source, **output.data_files}
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (Path(folder) / name).write_text(text)
    return [Path(folder) / "greeter.v", *(Path(name) for name, *_ in platform.sources)]


if __name__ == "__main__":
    print(*main(), sep="\n")
