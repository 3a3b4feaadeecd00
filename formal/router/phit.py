"""Proofs of ``PhitSender`` and ``PhitReceiver`` in ``cores/router/phit.py``.

Sender, over public ports: the phits of a flit follow the cycle in which it was taken, without a
gap, low bits first, all other fields the same in each; ``ready`` is 0 until the last of them is on
its way; nothing else is sent. Receiver: a flit comes with its last phit, whatever idle cycles there
were, and its data are those of its phits, the first one lowest. Both: fields lie where the contract
(``cores/router/contract.py``) says.

Not proved: a reset while running; other widths than those named.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Signal, Value

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS", "Flit", "SentFlit"]

USER, DEST = 2, 2


def _fields(m, view, vcs):
    """The contract's table: which bits each field has."""
    vc = {1: 1, 2: 1, 3: 2, 4: 2}[vcs]
    order = Cat(view.data, view.user, view.dest, view.vc, view.head, view.tail)
    widths = (len(view.user), len(view.dest), len(view.vc), len(view.head), len(view.tail))
    m.d.comb += Assert(Value.cast(view) == order)
    m.d.comb += Assert(Signal(init=widths == (USER, DEST, vc, 1, 1)))


class Flit:
    """A flit as it must leave: ``to`` is the output, bit by bit; 0 for nowhere."""

    def __init__(self, ports, phit, name):
        names = {"data": len(phit.data), "dest": len(phit.dest), "vc": len(phit.vc)}
        names |= {"tail": 1, "head": 1, "to": ports}
        for field, width in names.items():
            setattr(self, field, Signal(width, name=f"{name}_{field}"))
        self.all = Cat(getattr(self, field) for field in names)


class SentFlit:
    """What is on a link: the phits of the flit that was put last.

    ``busy``: a phit is there; ``number``: which; ``last``: it is the flit's last one.
    """

    def __init__(self, m, *, put, flit, link, phits):
        self.busy = Signal(name="sent_busy")
        self.number = Signal(range(phits), name="sent_number")
        self.last = self.number == phits - 1
        layout = Value.cast(flit)
        kept = Signal(len(layout), name="sent_flit")
        fields = flit.shape()(kept)
        with m.If(put):
            m.d.sync += [kept.eq(layout), self.busy.eq(1), self.number.eq(0)]
        with m.Elif(self.busy & ~self.last):
            m.d.sync += self.number.eq(self.number + 1)
        with m.Else():
            m.d.sync += self.busy.eq(0)
        m.d.comb += Assert(link.valid == self.busy)
        with m.If(link.valid):
            data = fields.data.word_select(self.number, len(link.phit.data))
            m.d.comb += Assert(link.phit.data == data)
            for name, _ in link.phit.shape():
                if name != "data":
                    m.d.comb += Assert(link.phit[name] == fields[name])


class SenderProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        phits = dut.config.flit_width // dut.config.phit_width
        free(m, dut.put, dut.flit)
        sent = SentFlit(m, put=dut.put, flit=dut.flit, link=dut, phits=phits)
        m.d.comb += [
            Assume(~dut.put | dut.ready),
            Assert(dut.ready == (~sent.busy | sent.last)),
        ]
        _fields(m, dut.flit, dut.config.vcs)
        _fields(m, dut.phit, dut.config.vcs)
        ended = Signal(2)
        with m.If(sent.busy & sent.last & (ended != 3)):
            m.d.sync += ended.eq(ended + 1)
        m.d.comb += [Cover((ended == 3) & ~dut.valid), Cover(sent.last & dut.put)]
        # Invariant.
        with m.If(sent.busy):
            m.d.comb += Assert(dut.left == phits - 1 - sent.number)
        with m.Else():
            m.d.comb += Assert(dut.left == 0)
        return m


class ReceiverProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        config = dut.config
        width, phits = config.phit_width, config.flit_width // config.phit_width
        free(m, dut.valid, dut.phit)
        number, last = Signal(range(phits + 1)), Signal()
        kept = [Signal(width, name=f"kept{k}") for k in range(phits - 1)]
        m.d.comb += [last.eq(number == phits - 1), Assert(dut.get == (dut.valid & last))]
        with m.If(dut.valid):
            m.d.sync += number.eq(number + 1)
            for k, piece in enumerate(kept):
                with m.If(number == k):
                    m.d.sync += piece.eq(dut.phit.data)
        with m.If(dut.get):
            m.d.sync += number.eq(0)
            m.d.comb += Assert(dut.flit.data == Cat(*kept, dut.phit.data))
            for name, _ in dut.phit.shape():
                if name != "data":
                    m.d.comb += Assert(dut.flit[name] == dut.phit[name])
        flits = Signal(2)
        with m.If(dut.get & (flits != 3)):
            m.d.sync += flits.eq(flits + 1)
        m.d.comb += [
            Cover((flits == 3) & ~dut.valid),
            Cover(dut.get & (dut.flit.data == 0b0110 % (1 << config.flit_width))),
        ]
        # Invariants: what is here is the top of `held`.
        m.d.comb += [Assert(number < phits), Assert(dut.count == number)]
        for k in range(1, phits):
            with m.If(number == k):
                m.d.comb += Assert(dut.held[(phits - 1 - k) * width :] == Cat(*kept[:k]))
        return m


def _proof(name, core, build, flit, phit, mutants):
    config = {"vcs": 3, "flit_width": flit, "phit_width": phit}
    config |= {"dest_width": DEST, "user_width": USER, "buffer_flits": 3, "reserved": 1}
    sends = "phits follow the flit, low bits first" if build == "PhitSender" else None
    harness = SenderProof if sends else ReceiverProof

    def build_it(cores):
        contract = __import__("trebuchet.cores.router.contract", fromlist=["LinkConfig"])
        return harness(getattr(cores, build)(contract.LinkConfig(**config)))

    return Proof(
        name=f"router_phit_{name}",
        core=core,
        says=sends or "a flit comes with its last phit and has all their data, in order",
        module="trebuchet.cores.router.phit",
        build=build_it,
        depth=1 + flit // phit,
        cover_depth=14,
        mutants=mutants,
        assumes="a flit is put only with `ready`" if sends else "nothing",
    )


PROOFS = (
    _proof(
        "sender",
        "cores.router.phit.PhitSender(3 phits)",
        "PhitSender",
        6,
        2,
        (
            Mutant(
                "leaves_a_gap", "config.phits - 1", "config.phits", within="PhitSender.elaborate"
            ),
            Mutant("shifts_too_far", "rest >> width", "rest >> (width + 1)"),
            Mutant("begins_with_the_top", "self.flit.data[:width]", "self.flit.data[-width:]"),
            Mutant("ready_too_early", "self.ready.eq(self.left == 0)", "self.ready.eq(1)"),
        ),
    ),
    _proof(
        "sender_whole",
        "cores.router.phit.PhitSender(1 phit)",
        "PhitSender",
        2,
        2,
        (
            Mutant(
                "drops_a_field",
                '[name for name, _ in flit.shape() if name != "data"]',
                '[name for name, _ in flit.shape() if name not in ("data", "head")]',
            ),
            Mutant("sends_nothing", "self.put | (self.left != 0)", "self.left != 0"),
        ),
    ),
    _proof(
        "receiver",
        "cores.router.phit.PhitReceiver(3 phits)",
        "PhitReceiver",
        6,
        2,
        (
            Mutant("too_early", "last = self.count == config.phits - 1", "last = self.count == 1"),
            Mutant("counts_idle_cycles", "with m.If(self.valid):", "with m.If(1):"),
            Mutant(
                "first_on_top",
                "self.flit, self.phit, Cat(held, self.phit.data)",
                "self.flit, self.phit, Cat(self.phit.data, held)",
            ),
        ),
    ),
    _proof(
        "receiver_whole",
        "cores.router.phit.PhitReceiver(1 phit)",
        "PhitReceiver",
        2,
        2,
        (Mutant("always", "self.get.eq(self.valid & last)", "self.get.eq(last)"),),
    ),
)
