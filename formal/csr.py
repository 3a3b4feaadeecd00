"""Proof of ``cores/csr.py``: what a register block becomes in a core's signature.

The core is a small one with a register of each kind, :class:`Counted`. Contract: each register has
the members, widths and directions of the table in ``cores/csr.py``; one that nobody has written has
its reset value, a strobe and a clear are 0; through them a counter counts each event once and
wraps, a pending bit that is set in the cycle of its clear stays; a declaration that does
not fit (fields that overlap or stick out, values or widths out of range, names twice) is refused.
The standard registers of a role lie where the role contract says.

Not proved: the bus, which is LiteX's (``soc/bridge.py``).
"""

from amaranth.hdl import Assert, Const, Cover, Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from ..cores.roles.contract import WATCHDOG, role_block
from .kit.proof import Mutant, Proof
from .stream import free, new_harness

__all__ = ["PROOFS"]


class Counted(wiring.Component):
    """Counts the cycles with ``enable`` and ``event``; remembers that there was one."""

    def __init__(self, cores, block):
        super().__init__({"csr": In(cores.CsrSignature(block)), "event": In(1)})

    def elaborate(self, platform):
        m = Module()
        csr = self.csr
        hit = self.event & csr.enable[0]
        m.d.sync += csr.events.eq(csr.events + hit)
        m.d.sync += csr.pending.eq((csr.pending & ~csr.pending_clear) | hit)
        with m.If(csr.zero[0]):
            m.d.sync += csr.events.eq(0)
        return m


#: Of the role contract: member, width, whether the core drives it; a register's two words are 8
#: bytes, so the first four lie at 0x00, 0x08, 0x10 and 0x18.
STANDARD = (
    ("busy", 64, True),
    ("start", 64, False),
    ("interrupt_enable", 64, False),
    ("interrupt_status", 64, True),
    ("interrupt_status_clear", 64, False),
    ("enable", 1, False),
    ("reset", 1, False),
    ("state", 3, True),
    ("watchdog", 16, False),
    ("hangs", 16, True),
    ("operand_addr", 32, False),
    ("operand_length", 20, False),
    ("result_addr", 32, False),
    ("result_room", 20, False),
    ("result_length", 20, True),
    ("result_status", 8, True),
    ("jobs", 32, True),
    ("errors", 16, True),
    ("cycles", 32, True),
)


class CsrProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        cores = self.cores
        block = cores.RegisterBlock(
            "small",
            (
                cores.counter("events", "events"),
                cores.Register("enable", "rw", 3, reset=5),
                cores.Register("zero", "stb", 2),
                cores.Register("pending", "w1c", 4),
            ),
        )
        m.submodules.dut = dut = Counted(cores, block)
        m.submodules.still = still = Counted(cores, block)  # nobody writes its registers
        csr = dut.csr
        free(m, dut.event, csr.enable, csr.zero, csr.pending_clear)
        events, pending = Signal(32), Signal(4)
        hit = dut.event & csr.enable[0]
        m.d.sync += [events.eq(events + hit), pending.eq((pending & ~csr.pending_clear) | hit)]
        with m.If(csr.zero[0]):
            m.d.sync += events.eq(0)
        m.d.comb += [
            Assert(csr.events == events),
            Assert(csr.pending == pending),
            Assert(still.csr.enable == 5),
            Assert((still.csr.zero == 0) & (still.csr.pending_clear == 0)),
            Cover((events == 3) & (pending == 1)),
        ]
        members = dut.signature.members["csr"].signature.flip().members
        members = cores.CsrSignature(block).members
        widths = {"events": 32, "enable": 3, "zero": 2, "pending": 4, "pending_clear": 4}
        driven = ("events", "pending")
        m.d.comb += Assert(Const(list(members) == list(widths), 1))
        for name, width in widths.items():
            member = members[name]
            m.d.comb += Assert(Const(member.shape, 8) == width)
            m.d.comb += Assert(Const(self._drives(member) == (name in driven), 1))
        self._refusals(m)
        self._standard(m)
        return m

    @staticmethod
    def _drives(member):
        """Whether the core drives a member: the signature is meant for an ``In`` port."""
        return member.flow == In

    def _standard(self, m):
        block = role_block("any")
        members = self.cores.CsrSignature(
            self.cores.RegisterBlock("any", tuple(self._own(r) for r in block.registers))
        ).members
        m.d.comb += Assert(Const(list(members) == [name for name, _, _ in STANDARD], 1))
        for name, width, drives in STANDARD:
            m.d.comb += Assert(Const(members[name].shape, 8) == width)
            m.d.comb += Assert(Const(self._drives(members[name]) == drives, 1))
        resets = {r.name: r.reset for r in block.registers}
        m.d.comb += Assert(Const(resets.pop("enable"), 1) == 1)
        m.d.comb += Assert(Const(resets.pop("watchdog"), 16) == WATCHDOG)
        m.d.comb += Assert(Const(any(resets.values()), 1) == 0)

    def _own(self, register):
        """The register again, made by the module under proof."""
        return self.cores.Register(
            register.name, register.access, register.width, register.description, register.reset
        )

    def _refusals(self, m):
        """What is wrong raises an error, what is just right does not."""
        make = self.cores
        field, register = make.Field, make.Register

        def two(a, b):
            return register("r", "ro", 8, fields=(field("a", *a), field("b", *b)))

        wrong = (
            lambda: two((0, 4), (3, 2)),
            lambda: two((0, 4), (5, 4)),
            lambda: register("r", "wo"),
            lambda: register("r", "rw", 65),
            lambda: register("r", "rw", 0),
            lambda: register("r", "rw", 3, reset=8),
            lambda: register("R", "ro"),
            lambda: make.RegisterBlock("b", (register("r", "ro"), register("r", "rw"))),
            lambda: make.RegisterBlock("b", (register("r", "w1c"), register("r_clear", "rw"))),
        )
        right = (
            lambda: two((0, 4), (4, 4)),
            lambda: register("r", "rw", 64),
            lambda: register("r", "rw", 3, reset=7),
        )
        for declare in wrong:
            m.d.comb += Assert(Const(_raises(declare), 1))
        for declare in right:
            m.d.comb += Assert(Const(not _raises(declare), 1))


def _raises(declare):
    try:
        declare()
    except ValueError:
        return True
    return False


PROOFS = (
    Proof(
        name="csr",
        quick=True,
        core="cores.csr: a block of four registers, and the standard ones of a role",
        says="registers have their members, widths, directions and resets; wrong ones are refused",
        module="trebuchet.cores.csr",
        build=CsrProof,
        depth=1,
        cover_depth=6,
        mutants=(
            Mutant("wrong_reset", 'init=r.reset if r.access == "rw" else 0', "init=0"),
            Mutant(
                "core_drives_strobes",
                'r.access in ("ro", "w1c")',
                'r.access in ("ro", "stb", "w1c")',
            ),
            Mutant(
                "narrow_counter",
                'Register(name, "ro", 32, description)',
                'Register(name, "ro", 16, description)',
            ),
            Mutant(
                "fields_overlap",
                "f.offset + f.width > self.width or used & mask",
                "f.offset + f.width > self.width",
            ),
            Mutant("field_sticks_out", "f.offset + f.width > self.width", "f.offset > self.width"),
        ),
        assumes="nothing",
        not_proved="the bus; a reset while running",
    ),
)
