"""The ready/valid contract of the components in ``cores/roles/ecg``.

What is left out, and why, is in ``tests/test_prove_contracts.py``.

Not proved: what :mod:`trebuchet.formal.kit.contracts` says; other sizes than those named.
"""

from amaranth.hdl import Assert, Assume, Signal
from trebuchet.cores.roles.ecg.window import ItemKind

from ..kit.contracts import contract
from ..kit.proof import Mutant

__all__ = ["PROOFS"]


def _vectors(m, dut, inside):
    """The FIFO holds no more last values than it has places."""
    m.d.comb += Assume(inside["complete"] < inside["depth"])


def _stays_ready(m, dut, inside):
    """The reader, once it is ready for a request, stays so until it gets one."""
    request, was = inside.parts["reader"].request, Signal()
    m.d.sync += was.eq(request.ready & ~request.valid)
    m.d.comb += Assume(~was | request.ready)


def _packer(m, dut, inside):
    m.d.comb += Assert(inside.begins["o"] == ~inside["begun"])


def _counter(m, dut, inside):
    """A block's count is known before the first record of the next one comes."""
    waits = Signal()  # a record does, while the count is not known
    m.d.sync += waits.eq(dut.o.valid & ~dut.o.ready & ~dut.count.valid)
    m.d.comb += Assume(~waits | ~dut.count.valid | (dut.count.payload != inside["given"]))


TAKEN = "with m.If(self.o.valid & self.o.ready):"
OFFERED = "with m.If(self.o.valid):"
COMES = "with m.If(self.i.valid & self.i.ready):"


def _features(m, dut, inside):
    """The rhythm is never a beat's last item."""
    for check, item in ((Assume, dut.item.payload), (Assert, inside["item"])):
        sums = (item.kind == ItemKind.VARIANCE) | (item.kind == ItemKind.RATIO)
        m.d.comb += check(sums | ~item.last)


PROOFS = (
    contract(
        "roles.ecg.bank.VectorStore",
        lambda cls: cls(3),
        (
            Mutant("flickers", "offered.eq(complete != 0)", "offered.eq(complete[0])"),
            Mutant(
                "counts_waiting",
                "self.o.valid & self.o.ready & self.o.payload.last",
                "self.o.valid & self.o.payload.last",
            ),
        ),
        size="3",
        more=_vectors,
    ),
    contract(
        "roles.ecg.configure.WeightPort",
        lambda cls: cls(16),
        (
            Mutant("forgets_the_answer", "with m.If(self.answer.ready):", "with m.If(1):"),
            Mutant("flickers", "self.answer.valid.eq(1)", "self.answer.valid.eq(self.idle)"),
        ),
        size="16 words",
        loose=("reader",),  # it is idle when it is asked
        quiet=("mem_wdata",),
        cover_depth=8,
    ),
    contract(
        "roles.ecg.front.FaithfulFrontEnd",
        lambda cls: cls(256),
        (
            Mutant("overwrites", "detector.done & ~self.count.valid", "detector.done"),
            Mutant("takes_back", "with m.If(self.count.ready):", "with m.If(1):"),
        ),
        size="256 samples",
    ),
    contract(
        "roles.ecg.load.BlockLoader",
        lambda cls: cls(),
        (
            Mutant(
                "flickers",
                "self.block.valid.eq(self.request.valid & reader.request.ready)",
                "self.block.valid.eq(self.request.valid & ~self.pair.valid & reader.request.ready)",
            ),
            Mutant(
                "size_moves",
                "self.block.payload.samples.eq(length[1:])",
                "self.block.payload.samples.eq(length[1:] + reader.done)",
                context="m.submodules.reader = reader = OperandReader(self.width, self.tag_width)",
            ),
        ),
        more=_stays_ready,
        through=(("reader.packet", "splitter.i"),),
        loose=("reader",),  # it is asked in the cycle in which the block is taken
    ),
    contract(
        "roles.ecg.load.PairPacker",
        lambda cls: cls(),
        (
            Mutant("first_again", "self.o.payload.first.eq(~begun)", "self.o.payload.first.eq(1)"),
            Mutant("counts_waiting", COMES, "with m.If(self.i.valid):"),
        ),
        more=_packer,
    ),
    contract(
        "roles.ecg.pipeline.PairSplitter",
        lambda cls: cls(64),
        (
            Mutant(
                "counts_waiting",
                f"{TAKEN} m.d.sync += at.eq(Mux(end, 0, at + 1))",
                f"{OFFERED} m.d.sync += at.eq(Mux(end, 0, at + 1))",
            ),
            Mutant(
                "ends_when_taken", "self.i.payload.last & end", "self.i.payload.last & self.o.ready"
            ),
        ),
        size="64",
    ),
    contract(
        "roles.ecg.pipeline.BlockCounter",
        lambda cls: cls(),
        (
            Mutant(
                "counts_waiting",
                f"{TAKEN} m.d.sync += given.eq(given + 1)",
                f"{OFFERED} m.d.sync += given.eq(given + 1)",
            ),
            Mutant(
                "flickers",
                "self.count.valid & (given == self.count.payload)",
                "self.count.valid & ~self.i.valid",
            ),
        ),
        more=_counter,
        assumes="the stream rules; a block's count is known before a record of the next comes",
    ),
    contract(
        "roles.ecg.logarithm.FeatureStage",
        lambda cls: cls(),
        (
            Mutant(
                "goes_on",
                'with m.If(out.ready):\n    m.next = "IDLE"',
                'with m.If(1):\n    m.next = "IDLE"',
                within='with m.State("SET"):',
            ),
            Mutant("kind_moves", "m.d.sync += index.eq(item.b)", "m.d.sync += item.eq(0)", 6),
        ),
        more=_features,
        assumes="the stream rules; the rhythm is never a beat's last item",
        cover_depth=6,
    ),
)
