"""Memory ports on AXI4.

Of :class:`~trebuchet.cores.axi.AxiMaster`, for commands of any place and length: the parts of a
burst follow one another from its first address on and have as many beats as it has; none crosses a
multiple of 4 KiB; each comes with as many beats of write data as its address says, the last one
marked. And that every stream keeps the ready/valid contract, as AXI asks.

Not proved: that tags and answers belong together, which rests on Amaranth's FIFO and is tested
(``tests/test_axi.py``).
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Fragment, Signal

from .kit.contracts import contract
from .kit.proof import Mutant, Proof
from .stream import free, new_harness

__all__ = ["PROOFS", "AxiBursts"]

PAGE = 4096


class AxiBursts(Elaboratable):
    """Addresses and beats of the bursts that a manager of ``width`` bits sends."""

    def __init__(self, cores, width=32):
        self.dut, self.n = cores.AxiMaster(width, 1, 4), width // 8

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        m.submodules.dut = Fragment.get(dut, platform)
        mem, axi = dut.mem, dut.axi
        free(m, mem.cmd.valid, mem.cmd.payload, mem.wdata.valid, mem.wdata.payload)
        free(m, mem.rdata.ready, mem.wdone.ready, axi.aw.ready, axi.w.ready, axi.ar.ready)
        free(m, axi.b.valid, axi.b.payload, axi.r.valid, axi.r.payload)
        m.d.comb += Assume(mem.cmd.p.addr % self.n == 0)
        for write, address in enumerate((axi.ar, axi.aw)):
            self._side(m, write, address)
        self._data(m)
        return m

    def _side(self, m, write, address):
        """``owed``: beats of the burst that no part has asked for; ``next``: where they are."""
        dut, cmd = self.dut, self.dut.mem.cmd
        side = dut.sides[write]
        owed = Signal(7, name=f"owed{write}")
        next_ = Signal(32, name=f"next{write}")
        active, left, addr = (side[name] for name in ("active", "left", "addr"))
        beats = address.p.len + 1
        shown = Signal(name=f"shown{write}")  # the part at `address` is not the one before
        m.d.sync += shown.eq(side["start"])
        with m.If(cmd.valid & cmd.ready & (cmd.p.write == write)):
            m.d.comb += Assert(owed == 0)
            m.d.sync += [owed.eq(cmd.p.beats + 1), next_.eq(cmd.p.addr)]
        with m.If(side["start"]):
            taken = side["length"] + 1
            m.d.comb += [Assert(addr == next_), Assert(taken <= owed)]
            m.d.sync += [owed.eq(owed - taken), next_.eq(next_ + taken * self.n)]
        m.d.comb += [
            Assert(active == (owed != 0)),
            Assert(~active | (owed == left + 1)),
            Assert(~active | (addr == next_)),
            Assert(~active | (addr % self.n == 0)),
        ]
        with m.If(address.valid):
            m.d.comb += [
                Assert(address.p.addr % PAGE + beats * self.n <= PAGE),
                Cover(shown & active & (address.p.addr % PAGE + beats * self.n == PAGE)),
            ]

    def _data(self, m):
        """``count``: beats of the part that have passed."""
        axi, (moves, left) = self.dut.axi, self.dut.part
        count = Signal(8)
        with m.If(axi.w.valid):
            m.d.comb += Assert(axi.w.p.last == (count == axi.aw.p.len))
            with m.If(axi.w.ready):
                m.d.sync += count.eq(count + 1)
                with m.If(axi.w.p.last):
                    m.d.sync += count.eq(0)
        m.d.comb += [
            Assert(~moves | (left + count == axi.aw.p.len)),
            Assert(moves | (count == 0)),
            Cover(moves & axi.w.valid & axi.w.p.last & (count == 2)),
            Cover(axi.w.valid & axi.w.ready & axi.aw.valid & ~axi.aw.ready),
        ]


PROOFS = (
    Proof(
        name="axi_bursts",
        core="cores.axi.AxiMaster(32, 1, 4)",
        says="bursts become parts that cover them, within 4 KiB, with as many beats of data",
        module="trebuchet.cores.axi",
        build=AxiBursts,
        depth=2,
        cover_depth=12,
        mutants=(
            Mutant("crosses", "final.eq(left <= room)", "final.eq(1)"),
            Mutant("one_too_many", "left.eq(left - length - 1)", "left.eq(left - length)"),
            Mutant("last_late", "w.p.last.eq(left == 0)", "w.p.last.eq(left == 1)"),
            Mutant("other_page", "addr[BOUNDARY_LOG2:] + 1", "addr[BOUNDARY_LOG2:] + 2"),
        ),
        assumes="commands at a multiple of a beat; the stream rules are not needed",
        not_proved="order of tags; other widths; behaviour under a reset while running",
        quick=True,
    ),
    contract(
        "axi.AxiMaster",
        lambda cls: cls(32, 1, 4),
        (
            Mutant("moves_on", "queue.w_rdy & (~address.valid | address.ready)", "queue.w_rdy"),
            Mutant(
                "takes_back",
                "self.mem.wdata.valid & moves",
                "self.mem.wdata.valid & moves & ~b.valid",
                context='queue, w, b, done = side["queue"], self.axi.w, self.axi.b, self.mem.wdone',
            ),
        ),
        size="32, 1, 4",
        cover_depth=10,
    ),
)
