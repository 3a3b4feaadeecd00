"""The ready/valid contract of the components of the web service (:mod:`..kit.contracts`).

What is left out, and why, is in ``tests/test_prove_contracts.py``.

Not proved: what :mod:`trebuchet.formal.kit.contracts` says; other sizes than those named.
"""

from amaranth.hdl import Assert, Assume, Signal
from trebuchet.cores.web.finder import HeadFinder
from trebuchet.models.http.limits import Limits

from ..kit.contracts import contract
from ..kit.proof import Mutant

__all__ = ["PROOFS"]

_LIMITS = Limits(head=60, target=30, path=16)


def _verdict_waits(m, dut, inside):
    """A verdict is offered only in the state in which no byte is taken."""
    m.d.comb += Assert(~dut.o.valid | (dut.over == 4))
    m.d.comb += Assert(dut.over <= 4)


def _one_burst(m, dut, inside):
    """Beats come only for the burst that was asked for, and it is asked for only once."""
    cmd, rdata = dut.mem.cmd, dut.mem.rdata
    owed = Signal()
    asks, ends = cmd.valid & cmd.ready, rdata.valid & rdata.ready & rdata.payload.last
    m.d.sync += owed.eq((owed | asks) & ~ends)
    m.d.comb += [
        Assume(~rdata.valid | owed),
        Assert(~(cmd.valid & owed)),
        Assert((cmd.valid | owed) == inside.state("BUCKET", "ENTRY")),
    ]


PROOFS = (
    contract(
        "web.answer.Answer",
        lambda cls: cls(),
        (
            Mutant("takes_all", "i.ready.eq(~o.valid | o.ready)", "i.ready.eq(1)"),
            Mutant("withdraws", "with m.If(i.ready):", "with m.If(1):"),
        ),
        size="heads of 12,288 bytes",
    ),
    contract(
        "web.desk.Desk",
        lambda cls: cls(14),
        (
            Mutant("withdraws", "with m.If(o.ready):", "with m.If(1):"),
            Mutant(
                "replies_on", "pending.eq(queue.o.valid & ~o.valid)", "pending.eq(queue.o.valid)"
            ),
        ),
        size="14, heads of 12,288 bytes",
    ),
    contract(
        "web.lookup.Lookup",
        lambda cls: cls(64),
        (
            Mutant("withdraws", "with m.If(cmd.ready):", "with m.If(1):"),
            Mutant("asks_on", 'm.next = "BUCKET"', 'm.next = "ASK_BUCKET"'),
        ),
        size="64",
        more=_one_burst,
        quiet=("mem_wdata",),
        assumes="the stream rules; read data only as asked for",
    ),
    contract(
        "web.parser.HeadParser",
        lambda cls: cls(_LIMITS.head, _LIMITS.target, _LIMITS.path),
        (
            Mutant("withdraws", "(~o.valid | o.ready)", "1"),
            Mutant("takes_more", "self.i.ready.eq(~self.over.any())", "self.i.ready.eq(1)"),
        ),
        size="60, 30, 16",
        more=_verdict_waits,
    ),
    contract(
        "web.slots.Slots",
        lambda cls: cls(HeadFinder(64, 12, 3), 2, 4098),
        (
            Mutant("withdraws", "with m.If(job.ready):", "with m.If(1):"),
            Mutant("begins_twice", "self.free.eq(~job.valid)", "self.free.eq(1)"),
        ),
        size="a finder with 3 slots, 2 lanes, 4,098 bytes",
    ),
)
