"""A small component with the shell's ports, for tests of the SoC around it."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from trebuchet.cores.csr import CsrSignature, Field, Register, RegisterBlock, counter
from trebuchet.cores.memory import MemorySignature
from trebuchet.cores.stream import PacketSignature

SHELL_BLOCK = RegisterBlock(
    "shell",
    (
        Register("enable", "rw", 1, "1: frames are taken"),
        Register("mac", "rw", 48, "MAC address, first byte on the wire in bits 7..0"),
        Register("ip", "rw", 32, "IPv4 address as a number"),
        Register("start", "stb", 64, "write 1: begin"),
        Register("alarm", "w1c", 64, "what happened", fields=(Field("late", 0), Field("lost", 3))),
        counter("ticks", "milliseconds seen"),
    ),
    "placeholder of the shell",
)


class PlaceholderShell(wiring.Component):
    """Hands every received frame to the other port and back; counts ticks; reads no memory."""

    def __init__(self, width=32):
        super().__init__(
            {
                "rx": In(PacketSignature(width)),
                "tx": Out(PacketSignature(width)),
                "other_rx": Out(PacketSignature(width)),
                "other_tx": In(PacketSignature(width)),
                "mem": Out(MemorySignature(width, 2)),
                "tick": In(1),
                "irq": Out(1),
                "csr_shell": In(CsrSignature(SHELL_BLOCK)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        wiring.connect(m, wiring.flipped(self.rx), wiring.flipped(self.other_rx))
        wiring.connect(m, wiring.flipped(self.other_tx), wiring.flipped(self.tx))
        # Reads one word after another, so that the memory path is not optimised away.
        csr = self.csr_shell
        word = Signal(32)
        m.d.comb += [
            self.mem.cmd.valid.eq(csr.enable),
            self.mem.cmd.p.addr.eq(word << 2),
            self.mem.rdata.ready.eq(1),
            self.mem.wdone.ready.eq(1),
        ]
        with m.If(self.mem.cmd.valid & self.mem.cmd.ready):
            m.d.sync += word.eq(word + 1)
        with m.If(self.tick):
            m.d.sync += csr.ticks.eq(csr.ticks + 1)
        m.d.sync += csr.alarm.eq((csr.alarm & ~csr.alarm_clear) | csr.start)
        m.d.comb += self.irq.eq(csr.alarm != 0)
        return m
