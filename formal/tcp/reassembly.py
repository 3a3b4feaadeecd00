"""Proofs of the runs kept beyond gaps: ``cores/tcp/reassembly.py``.

Of any sound record and any text in its window, in distances from RCV.NXT that never wrap: which
runs are left in which order, what the text's run is, whether there is room for it, and that all
runs lie in the window and none touches another, as before. For one run at the width of real
windows, and for four with windows of 63 bytes: nothing in it but its slices knows the width.

Not proved: records whose runs touch, which ``tcp_receive_bytes`` shows there are none of.
"""

from dataclasses import asdict

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.segment import rx_segment_layout

from ..kit.proof import Mutant, Proof
from ..stream import new_harness
from .classifier import SMALL, Numbers, constant

__all__ = ["PROOFS", "joined"]


class Narrow(TcpConfig):
    """Windows of few bits, so that solvers see the end of four runs."""

    window_bits = 6


FOUR = Narrow(**{**asdict(SMALL), "runs": 4})


def joined(m, gaps, n, kept, ahead, begin, end, check):
    """State with ``check``, ``Assert`` or ``Assume``, what ``gaps`` has to say of a text.

    ``n`` are the :class:`~.tcp_classifier.Numbers` of the record with ``kept`` runs, ``begin`` and
    ``end`` the text's distances.
    """
    bits, low = n.bits + 2, len(gaps.begin)
    touches, apart = [], []
    first, last = begin, end
    for k, (start, stop) in enumerate(n.runs):
        near = (start <= end) & (begin <= stop)
        yields = ahead & (end < start) & (len(n.runs) == 1)
        touches.append((kept > k) & near)
        apart.append((kept > k) & ~near & ~yields)
        first = Mux(touches[k] & (start < begin), start, first)
        last = Mux(touches[k] & (stop > end), stop, last)
    whole = Signal(bits, name="whole_begin"), Signal(bits, name="whole_end")
    alone = ahead & ~Cat(touches).any()
    m.d.comb += [whole[0].eq(first), whole[1].eq(last)]
    left = Signal(range(len(n.runs) + 1))
    m.d.comb += [
        left.eq(sum(apart)),
        check(gaps.full == (alone & (left == len(n.runs)))),
        check(gaps.full | (gaps.count == left + ahead)),
        check(ahead | (gaps.jump == (Cat(touches).any() & (last > end)))),
        check(ahead | (gaps.edge == (n.base_nxt + whole[1])[:32])),
    ]

    def at(run, places):
        """Run ``run`` of ``gaps`` lies at these distances."""
        return [
            check(Value.cast(run[name]) == (n.base_nxt + place)[:low])
            for name, place in zip(("begin", "end"), places, strict=True)
        ]

    with m.If(~gaps.full):
        with m.If(ahead):
            m.d.comb += at(gaps.runs[0], whole)
        for k, run in enumerate(n.runs):
            before = sum(apart[:k])  # of those that are left
            for i in range(k + 2):
                if i < len(n.runs):
                    with m.If(apart[k] & (before + ahead == i)):
                        m.d.comb += at(gaps.runs[i], run)
    return whole, left


class RunsProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        config, r = dut.config, dut.record
        seg = Signal(rx_segment_layout(config))
        n = Numbers(m, seg, r, config)
        m.d.comb += n.sound(r)
        ahead = constant(m, "ahead", 1)
        begin, end = (constant(m, f"d_{name}", n.bits) for name in ("begin", "end"))
        m.d.comb += [
            Assume(ahead == (begin != 0)),
            Assume((begin <= end) & (end <= n.edge)),
            Assume(~ahead | (begin < end)),
            dut.ahead.eq(ahead),
            dut.begin.eq(n.base_nxt + begin),
            dut.end.eq(n.base_nxt + end),
        ]
        ready = config.runs + 3
        age = Signal(range(ready + 2))
        m.d.sync += age.eq(Mux(age == ready + 1, age, age + 1))
        m.d.comb += [
            dut.start.eq(age == 0),
            Assert(dut.done == (age == ready)),
            Assert(dut.go == ((1 << age) >> 1)[: len(dut.go)]),
        ]
        with m.If(age == ready):
            joined(m, dut, n, r.kept, ahead, begin, end, Assert)
            m.d.comb += [
                Cover(dut.full),
                Cover(ahead & (dut.count == r.kept) & (dut.count != 0)),
                Cover(ahead & (dut.count == config.runs) & (r.kept == config.runs)),
                Cover(~ahead & dut.jump & (dut.edge < r.rcv_nxt)),
                Cover(~ahead & ~dut.jump & (dut.count != r.kept)),
            ]
        return m


def _proof(name, config, mutants, says):
    return Proof(
        name=name,
        core=f"cores.tcp.reassembly.ReassemblyBlocks, runs={config.runs}",
        says=says,
        module="trebuchet.cores.tcp.reassembly",
        build=lambda cores: RunsProof(cores.ReassemblyBlocks(config)),
        depth=config.runs + 5,
        cover_depth=config.runs + 5,
        mutants=mutants,
        assumes="a sound record: no two runs touch; all inputs stand still",
    )


PROOFS = (
    _proof(
        "tcp_reassembly_one",
        SMALL,
        (
            Mutant(
                "joins_no_neighbours",
                "beyond = later(run.begin, self.end)",
                "beyond = ~later(self.end, run.begin)",
                8,
            ),
            Mutant(
                "jumps_always",
                "with m.If(touches & behind):\n"
                "    m.d.sync += [whole.end.eq(last.end), moved.eq(1)]",
                "with m.If(touches):\n    m.d.sync += [whole.end.eq(last.end), moved.eq(1)]",
                8,
            ),
            Mutant(
                "keeps_the_further",
                "~(beyond & self.ahead) if n == 1 else 1",
                "1 if n == 1 else 1",
                8,
            ),
        ),
        "one run beyond a gap is joined with what touches it, and with nothing else; a nearer one "
        "takes its place",
    ),
    _proof(
        "tcp_reassembly_four",
        FOUR,
        (
            Mutant("oldest_first", "go[n - 1 - k]", "go[k]", 10),
            Mutant("one_too_many", "full = self.count == n", "full = 0", 10),
            Mutant("keeps_all", "apart.eq(here & off & stays)", "apart.eq(here & stays)", 10),
        ),
        "four runs stay apart and in order, the one with the newest segment first",
    ),
)
