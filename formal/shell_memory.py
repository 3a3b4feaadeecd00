"""Proof of where a shell puts its data: ``ShellMemory`` of ``cores/shell_memory.py``.

For every session of some configurations, chosen by the solver: its two result slots, its mailbox
slot, its part of each role's scratch memory and the buffers of a peer lie in the shell's part of
the memory, begin at a multiple of what their users ask for, and neither these nor the receive pool
and the page nor those of any other session overlap. The addresses of slots are those that framer,
mailbox and loader compute: base, and number times size.

A result slot holds the longest result and its header.

Not proved here: how the parts are connected (``shell_parts``).
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Const, Cover, Elaboratable, Signal

from .kit.proof import Mutant, Proof
from .stream import new_harness

__all__ = ["PROOFS"]

SCRATCH = (("one", 8), ("two", 11), ("three", 8))  # log2 of the bytes of each session
PAGE = 65536
CONFIGS = (
    dict(
        base=0,
        pool=1 << 16,
        sessions=4,
        scratch=SCRATCH,
        result_slot=2048,
        peers=3,
        operand=1 << 14,
    ),
    dict(base=1 << 20, pool=3 << 14, sessions=5, result_slot=8192),
    dict(base=1 << 18, pool=1 << 15, sessions=8, result_slot=256, peers=1, operand=1024),
    dict(base=0, pool=1 << 15, sessions=8, result_slot=32, scratch=(("odd", 5),), state=5000),
)


class ShellMemoryProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        one, two, at = (Signal(36, name=name) for name in ("one", "two", "at"))
        m.d.comb += [one.eq(AnyConst(36)), two.eq(AnyConst(36)), at.eq(AnyConst(36))]
        m.d.comb += Assume(one != two)
        ran = Signal()
        m.d.sync += ran.eq(1)
        for config in CONFIGS:
            self._layout(m, config, one, two, at)
        m.d.comb += Cover(ran)
        for result in (1, 15, 16, 17, 100, 1008, 1009, 2032, 2033):
            slot = self.cores.slot_for(result)
            fits = slot >= result + 16 and slot & (slot - 1) == 0 and slot >= 32
            tight = slot == 32 or slot // 2 < result + 16
            m.d.comb += Assert(Const(fits and tight, 1))
        return m

    def _layout(self, m, config, one, two, at):
        """No byte ``at`` is in two regions, nor in the same region of two sessions."""
        memory = self.cores.ShellMemory(**config)
        sessions, slot = config["sessions"], config["result_slot"]
        base = config["base"]
        areas = [
            (base, config["pool"], 1),
            (memory["results"].base, 2 * slot, sessions),
            (memory["mailbox"].base, 4096, sessions),
            (memory["page"].base, PAGE, 1),
        ]
        for name, log2 in config.get("scratch", ()):
            start = memory[f"scratch_{name}"].base
            areas.append((start, 1 << log2, sessions))
            m.d.comb += Assert(Const(start % (1 << log2) == 0, 1))
        if config.get("peers"):
            server = memory.cluster
            size = server.size
            areas.append((server.base, size, 1))
            align = max(config["operand"], slot)
            m.d.comb += Assert(Const(server.base % align == 0, 1))
            per = config["peers"] * (config["operand"] + slot)
            m.d.comb += Assert(Const(size >= per, 1))
        if config.get("state"):
            start = memory["sessions"].base
            areas.append((start, config["state"], 1))
            m.d.comb += Assert(Const(start % 128 == 0, 1))
        end = base + memory.size
        hits = [self._inside(at, start, size, count, one) for start, size, count in areas]
        others = [self._inside(at, start, size, count, two) for start, size, count in areas]
        total = sum(hits)
        m.d.comb += Assert(total <= 1)
        for hit, other, (_, _, count) in zip(hits, others, areas, strict=True):
            m.d.comb += Assert(~hit | ((at >= base) & (at < end)))
            if count > 1:
                m.d.comb += Assert(~(hit & other))
        used = sum(size * count for _, size, count in areas)
        m.d.comb += [
            Assert(Const(memory["results"].base % 16 == 0, 1)),
            Assert(Const(memory["mailbox"].base % 4096 == 0, 1)),
            Assert(Const(memory.size >= used, 1)),
            *(Assert(Const(base <= region.base <= region.end <= end, 1)) for region in memory),
        ]

    @staticmethod
    def _inside(at, start, size, count, number):
        if count == 1:
            return (at >= start) & (at < start + size)
        mine = Const(start, 36) + number[:8] * size
        return (number < count) & (at >= mine) & (at < mine + size)


PROOFS = (
    Proof(
        name="shell_memory",
        core="cores.shell_memory.ShellMemory: four configurations",
        says="no two of the shell's buffers share a byte, and all lie in its part of the memory",
        module="trebuchet.cores.shell_memory",
        build=ShellMemoryProof,
        depth=1,
        cover_depth=3,
        mutants=(
            Mutant(
                "one_slot",
                "2 * messages * result_slot",
                "sessions * result_slot",
                context="sessions * MAILBOX_SLOT",
            ),
            Mutant(
                "page_over_slots",
                "sessions * MAILBOX_SLOT, MAILBOX_SLOT",
                "MAILBOX_SLOT, MAILBOX_SLOT",
            ),
            Mutant("no_header", "(RESULT_HEADER + result - 1)", "(result - 1)"),
            Mutant("scratch_of_one_session", "messages << log2", "1 << log2"),
            Mutant(
                "scratch_anywhere",
                'f"scratch_{name}", messages << log2, 1 << log2',
                'f"scratch_{name}", messages << log2, 1',
            ),
        ),
        assumes="nothing",
        not_proved="how the parts are connected (shell_parts)",
    ),
)
