"""Registers on the long ways of the SoC, so that its clock is not that of its widest bus.

Each takes cycles that nobody misses: firmware runs from on-chip memory, and what goes through
registers and external memory by the CPU is no data path.
"""

from litex.gen import LiteXModule, Reduce
from litex.soc.interconnect import wishbone
from migen import FSM, If, NextState, NextValue, Signal

__all__ = ["AnswerSlice", "BusSlice", "CsrBridge", "CsrInterconnect"]

#: Words of a CSR bank, by address bits.
_BANK_BITS = 9


class BusSlice(LiteXModule):
    """A Wishbone slave's port, ``bus``, in front of ``slave``, with registers both ways.

    An access takes two cycles more than the slave's own. A master may give one up; if the slave
    answers in that cycle, ``ack`` is 1 in the next one still, and never after it. Classic cycles
    only. Reset: idle; the slave must be reset with it. Bad input: a master that gives an access up
    and starts another without a cycle between them may get the answer of the first.
    """

    def __init__(self, slave):
        self.bus = bus = wishbone.Interface(
            slave.data_width, address_width=32, addressing=slave.addressing
        )
        asks, under_way = Signal(), Signal()
        self.comb += [
            asks.eq(bus.cyc & bus.stb & ~bus.ack),
            slave.cyc.eq(under_way),
            slave.stb.eq(under_way),
        ]
        self.sync += [
            bus.ack.eq(under_way & slave.ack & asks),
            bus.err.eq(under_way & slave.err & asks),
            bus.dat_r.eq(slave.dat_r),
            under_way.eq(asks & ~(under_way & slave.ack)),
            If(
                ~under_way,
                slave.adr.eq(bus.adr),
                slave.dat_w.eq(bus.dat_w),
                slave.sel.eq(bus.sel),
                slave.we.eq(bus.we),
            ),
        ]


class AnswerSlice(LiteXModule):
    """A Wishbone master's way to ``bus``, with registers on the way back.

    Without, what the CPU does in a cycle waits for the decoder of its own address, and for all
    slaves' answers: 20 ns of an ECP5 at speed grade 6. An access takes a cycle more than the
    slave's own. Classic cycles only; a master keeps an access until it is answered, as VexRiscv
    does. Reset: idle.
    """

    def __init__(self, master):
        self.bus = bus = wishbone.Interface(
            master.data_width, address_width=32, addressing=master.addressing
        )
        answered = Signal()
        self.comb += [
            master.connect(bus, omit={"cyc", "stb", "ack", "err", "dat_r"}),
            answered.eq(master.ack | master.err),
            bus.cyc.eq(master.cyc & ~answered),
            bus.stb.eq(master.stb & ~answered),
        ]
        self.sync += [
            master.ack.eq(bus.ack & bus.stb),
            master.err.eq(bus.err & bus.stb),
            master.dat_r.eq(bus.dat_r),
        ]


class CsrBridge(LiteXModule):
    """From Wishbone to the CSR bus of :class:`CsrInterconnect`; an access takes five cycles.

    In the place of LiteX's ``Wishbone2CSR``: ``wishbone`` (addressed in words) and ``csr`` are what
    they are there, and on ``csr`` reads and writes last one cycle, too.
    """

    def __init__(self, bus_wishbone, bus_csr):
        self.wishbone, self.csr = bus_wishbone, bus_csr
        asks, chosen = self.wishbone.cyc & self.wishbone.stb, self.wishbone.sel != 0
        idle = [NextValue(self.csr.adr, 0), NextValue(self.csr.re, 0), NextValue(self.csr.we, 0)]
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act(
            "IDLE",
            NextValue(self.csr.dat_w, self.wishbone.dat_w),
            If(
                asks,
                NextValue(self.csr.adr, self.wishbone.adr),
                NextValue(self.csr.re, ~self.wishbone.we & chosen),
                NextValue(self.csr.we, self.wishbone.we & chosen),
                NextState("TO_BANK"),
            ),
        )
        fsm.act("TO_BANK", *idle, NextState("IN_BANK"))
        fsm.act("IN_BANK", NextState("FROM_BANK"))
        fsm.act("FROM_BANK", NextState("ACK"))
        fsm.act(
            "ACK",
            self.wishbone.ack.eq(1),
            self.wishbone.dat_r.eq(self.csr.dat_r),
            NextState("IDLE"),
        )


class CsrInterconnect(LiteXModule):
    """One CSR bus to all banks of a SoC: registers in front of each, and one behind all.

    A bank sees an access a cycle after ``master``, which gets its word two cycles after that. All
    other banks see an address that is nobody's.

    Parameters
    ----------
    soc : SoC
        Its ``csr_bankarray`` is what is connected, which LiteX makes when the SoC is finalized.
    master : csr_bus.Interface
        From :class:`CsrBridge`.
    """

    def __init__(self, soc, master):
        self._banks = lambda: soc.csr_bankarray  # a module as attribute would become a part
        self._master = master

    def do_finalize(self):
        array, master = self._banks(), self._master
        banks = [(number, bank.bus) for _, _, number, bank in (*array.banks, *array.srams)]
        nobody = 2 ** (len(master.adr) - _BANK_BITS) - 1
        if any(number == nobody for number, _ in banks):
            raise ValueError(f"No bank may have the number {nobody}")
        for number, bus in banks:
            mine = Signal()
            self.comb += mine.eq(master.adr[_BANK_BITS:] == number)
            self.sync += [
                bus.adr.eq(nobody << _BANK_BITS),
                If(mine, bus.adr.eq(master.adr)),
                bus.re.eq(master.re & mine),
                bus.we.eq(master.we & mine),
                bus.dat_w.eq(master.dat_w),
            ]
        self.sync += master.dat_r.eq(Reduce("OR", [bus.dat_r for _, bus in banks]))
