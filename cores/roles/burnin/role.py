"""The burn-in role: work for logic, multipliers, block RAM, memory and link that checks itself.

``models/burnin.py`` is the naive model and defines operand and result; docs/burnin.md is for users.
"""

from dataclasses import dataclass
from functools import reduce
from operator import or_, xor

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring

from ....models.burnin import (
    DEPTH,
    HEADER_BYTES,
    LANE_STEP,
    MAGIC,
    PATTERN_SEEDS,
    REPORT_BYTES,
)
from ...csr import RegisterBlock, counter
from ...engines.contract import StreamEngineSignature
from ...tcp.service import LENGTH_WIDTH
from ..needs import MOST_RESULT, RoleNeeds
from ..packet_role import PacketRole
from .lane import DRAIN, BurninLane, xorshift

__all__ = ["BURNIN_BLOCK", "BurninBody", "BurninConfig", "BurninRole"]

#: Bits of the number of steps of a message.
_CYCLE_BITS = 24
_MOST_LANES = 1024

BURNIN_BLOCK = RegisterBlock(
    "burnin",
    (
        counter("messages", "reports sent (wraps)"),
        counter("wrong_words", "words of operands that differed from the pattern (wraps)"),
        counter("logic_faults", "cycles in which two copies of a generator differed (wraps)"),
        counter("multiplier_faults", "cycles with a wrong product (wraps)"),
        counter("ram_faults", "cycles in which block RAM returned a wrong word (wraps)"),
    ),
    "the burn-in role: mismatches that it found",
)


def _generators(seed):
    """Begin of the four generators of a pattern, as one word."""
    return Cat((seed ^ Const(start, 32)) | 1 for start in PATTERN_SEEDS)


def _advanced(noise, width):
    """The generators after a beat of ``width`` bits has left."""
    words = [xorshift(noise.word_select(k, 32)) for k in range(width // 32)]
    return Cat(noise, *words)[width:]


class BurninBody(wiring.Component):
    """Takes a header and a pattern, checks it, runs lanes, reports, and gives a pattern.

    ========  ===  ================================================================================
    ``i``     In   packet stream: operand of ``models/burnin.py``
    ``o``     Out  packet stream: report, then pattern
    ``csr``   In   :data:`BURNIN_BLOCK`
    ========  ===  ================================================================================

    Parameters: ``width``, data path in bits: 32, 64 or 128; ``lanes``, 1 to 1024, each about
    560 LUT4, 1 multiplier of 18 by 18 bits and 1 block RAM; ``depth``, words of the latter.

    Throughput: a beat a cycle in, later a beat a cycle out. Latency: ``cycles`` + 13 cycles
    from last to first beat, 2 more if there is no pattern. Back-pressure: ``i`` waits for one cycle
    after the header, and from the packet's last beat until the last beat of the result was taken.
    Reset: idle, counters 0. Bad input: a packet that is damaged, ends in the header or within a
    beat, or whose header has a value out of its range, leaves as one beat with ``error``; it is
    taken whole before. No promise of growth or latency (``limits``): both are asked for.
    """

    def __init__(self, width=32, lanes=4, depth=DEPTH):
        if not 1 <= lanes <= _MOST_LANES:
            raise ValueError(f"Lanes must be 1 to {_MOST_LANES}, not {lanes!r}")
        self.width, self.lanes, self.depth = width, lanes, depth
        super().__init__(StreamEngineSignature(width, BURNIN_BLOCK))
        if width > 8 * HEADER_BYTES:
            raise ValueError(f"Width must be at most {8 * HEADER_BYTES}, not {width!r}")

    # The header, the report and the generators are shift registers whose low bits are the next
    # beat, as in the benchmark role: what is sent is the same for every width.
    def elaborate(self, platform):
        m = Module()
        i, o, width, n = self.i.payload, self.o.payload, self.width, self.width // 8
        header = Signal(8 * HEADER_BYTES)
        seed, cycles, answer, inject = (header.word_select(k, 32) for k in range(4))
        noise = Signal(128)
        report = Signal(8 * REPORT_BYTES)
        left = Signal(LENGTH_WIDTH, init=HEADER_BYTES // n)  # beats of what comes or goes now
        bad = Signal()
        ended = Signal()
        checked = Signal(LENGTH_WIDTH)
        wrong = Signal(LENGTH_WIDTH)
        faults = [Signal(_CYCLE_BITS, name=f"{name}_faults") for name in ("lut", "dsp", "ram")]
        start, step, first, signature = self._lanes(m, seed, inject, faults)
        steps = Signal(_CYCLE_BITS)
        broken = i.last & (i.error | (i.empty != 0))
        good = (
            ~bad
            & (cycles[_CYCLE_BITS:] == 0)
            & (answer[:4] == 0)
            & (answer[LENGTH_WIDTH:] == 0)
            & (inject[3:] == 0)
        )
        differs = [i.data.word_select(k, 32) != noise.word_select(k, 32) for k in range(n // 4)]
        with m.FSM(name="body"):
            with m.State("HEADER"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [bad.eq(broken), ended.eq(i.last), checked.eq(0), wrong.eq(0)]
                with m.If(self.i.valid):
                    m.d.sync += [header.eq(Cat(header, i.data)[width:]), left.eq(left - 1)]
                    with m.If(left == 1):
                        m.next = "SEED"
                    with m.Elif(i.last):
                        m.d.sync += bad.eq(1)
                        m.next = "PLAN"
            with m.State("SEED"):
                m.d.sync += noise.eq(_generators(seed))
                m.next = "PATTERN"
                with m.If(ended):
                    m.next = "PLAN"
            with m.State("PATTERN"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    m.d.sync += [
                        bad.eq(bad | broken),
                        noise.eq(_advanced(noise, width)),
                        checked.eq(checked + n // 4),
                        wrong.eq(wrong + sum(differs)),
                    ]
                    with m.If(i.last):
                        m.next = "PLAN"
            with m.State("PLAN"):
                m.d.comb += start.eq(1)
                m.d.sync += [steps.eq(cycles), left.eq(DRAIN), first.eq(1), o.first.eq(1)]
                m.next = "BAD"
                with m.If(good):
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += step.eq(steps != 0)
                with m.If(step):
                    m.d.sync += [steps.eq(steps - 1), first.eq(0)]
                with m.Else():
                    m.d.sync += left.eq(left - 1)
                    with m.If(left == 1):
                        m.next = "SUM"
            with m.State("SUM"):
                words = (checked, wrong, cycles, *faults, signature)
                kind = Const(MAGIC << 16 | self.lanes, 32)
                m.d.sync += report.eq(Cat(kind, *(Cat(word, Const(0, 32))[:32] for word in words)))
                m.d.sync += [noise.eq(_generators(~seed)), left.eq(REPORT_BYTES // n)]
                self._count(m, wrong, faults)
                m.next = "REPORT"
            with m.State("REPORT"):
                m.d.comb += [
                    self.o.valid.eq(1),
                    o.data.eq(report[:width]),
                    o.last.eq((left == 1) & (answer[:LENGTH_WIDTH] == 0)),
                ]
                with m.If(self.o.ready):
                    m.d.sync += [report.eq(report >> width), left.eq(left - 1), o.first.eq(0)]
                    with m.If(left == 1):
                        m.d.sync += left.eq(answer[:LENGTH_WIDTH] >> (n.bit_length() - 1))
                        m.next = "ANSWER"
                    with m.If(o.last):
                        m.d.sync += left.eq(HEADER_BYTES // n)
                        m.next = "HEADER"
            with m.State("ANSWER"):
                m.d.comb += [
                    self.o.valid.eq(1),
                    o.data.eq(noise[:width]),
                    o.last.eq(left == 1),
                ]
                with m.If(self.o.ready):
                    m.d.sync += [noise.eq(_advanced(noise, width)), left.eq(left - 1)]
                    with m.If(o.last):
                        m.d.sync += left.eq(HEADER_BYTES // n)
                        m.next = "HEADER"
            with m.State("BAD"):
                m.d.comb += [
                    self.o.valid.eq(1),
                    o.last.eq(1),
                    o.empty.eq(n - 1),
                    o.error.eq(1),
                ]
                with m.If(self.o.ready):
                    m.d.sync += left.eq(HEADER_BYTES // n)
                    m.next = "HEADER"
        return m

    def _lanes(self, m, seed, inject, faults):
        """Add lanes and their counters; return start, step, whether it is the first, signature."""
        start, step, first = Signal(), Signal(), Signal()
        signature, lanes = Signal(32), []
        for k in range(self.lanes):
            m.submodules[f"lane_{k}"] = lane = BurninLane(self.depth)
            m.d.comb += [
                lane.init.eq((seed ^ Const(LANE_STEP * (k + 1) & 0xFFFFFFFF, 32)) | 1),
                lane.start.eq(start),
                lane.step.eq(step),
            ]
            if k == 0:
                m.d.comb += lane.inject.eq(Mux(first, inject[:3], 0))
            lanes.append(lane)
        m.d.sync += signature.eq(reduce(xor, (lane.digest for lane in lanes)))
        for name, count in zip(("lut_bad", "dsp_bad", "ram_bad"), faults, strict=True):
            seen = Signal(name=f"any_{name}")
            m.d.sync += seen.eq(reduce(or_, (getattr(lane, name) for lane in lanes)))
            with m.If(start):
                m.d.sync += count.eq(0)
            with m.Else():
                m.d.sync += count.eq(count + seen)
        return start, step, first, signature

    def _count(self, m, wrong, faults):
        csr = self.csr
        kept = (csr.wrong_words, csr.logic_faults, csr.multiplier_faults, csr.ram_faults)
        m.d.sync += csr.messages.eq(csr.messages + 1)
        m.d.sync += [sum_.eq(sum_ + x) for sum_, x in zip(kept, (wrong, *faults), strict=True)]


@dataclass(frozen=True)
class BurninConfig:
    """Options of the burn-in role.

    Attributes
    ----------
    lanes : int
        Lanes, 1 to 1024; each has about 560 LUT4, a multiplier and a block RAM of an ECP5.
    result_bytes : int
        Bytes of the longest result that a shell makes room for, as of the loopback role.
    """

    lanes: int = 4
    result_bytes: int = (1 << 15) - 16

    def __post_init__(self):
        if not 1 <= self.lanes <= _MOST_LANES:
            raise ValueError(f"option lanes must be 1 to {_MOST_LANES}, not {self.lanes}")
        if not REPORT_BYTES <= self.result_bytes <= MOST_RESULT:
            raise ValueError(
                f"option result_bytes must be {REPORT_BYTES} to {MOST_RESULT}, "
                f"not {self.result_bytes}"
            )


class BurninRole(PacketRole):
    """Exercises logic, multipliers, block RAM, memory and link, checks them, and reports.

    Parameters: ``width``, ``tag_width`` of the memory port; ``lanes``. The operand is a header of
    16 bytes and a pattern, which TCP has put into external memory; the result a report of 32 bytes
    and a pattern. An operand that is no multiple of 16 bytes is answered ``BAD_LENGTH``, a header
    with a value out of its range ``BAD_DATA``. At most 2**24 cycles a message, so the watchdog of a
    slot does not end it. Ports, latency beside the body's, reset:
    :class:`~trebuchet.cores.roles.packet_role.PacketRole`. Options in a plan: ``lanes``,
    ``result_bytes``.
    """

    Config = BurninConfig

    @staticmethod
    def needs(config):
        """Return what it needs of a shell: room for results of ``result_bytes``."""
        return RoleNeeds(largest_result=lambda _: config.result_bytes)

    @classmethod
    def place(cls, config, place):
        """Return the role for a shell."""
        return cls(place.width, place.tag_width, config.lanes)

    def __init__(self, width=32, tag_width=2, lanes=4, depth=DEPTH):
        lengths = range(HEADER_BYTES, 1 << LENGTH_WIDTH, 16)
        super().__init__(BurninBody(width, lanes, depth), width, tag_width, lengths)
