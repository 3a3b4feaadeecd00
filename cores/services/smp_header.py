"""The first bytes of an SMP message: read from a receive ring, and the role that they name."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..memory import ADDR_WIDTH, MemorySignature
from ..roles.contract import NO_ROLE, ROLE_WIDTH

__all__ = ["RoleChoice", "SmpHeaderReader"]


class RoleChoice(wiring.Component):
    """Which role a message is for, and whether a job for it would be taken at once.

    Parameters
    ----------
    count : int
        Roles that there are.
    last : int
        The largest number of a role that a message may name.

    =========  ===  ===========================================================================
    ``asked``  In   the header's byte: 0: ``own``; n: role n - 1
    ``own``    In   number of the role of messages that name none
    ``doors``  In   bit k: role k takes a job at once; if there are several roles
    ``role``   Out  number of the role; one that is not there has no door
    ``open``   Out  1 unless its door is closed
    =========  ===  ===========================================================================

    Combinational. Bad input: larger numbers than ``last`` are ``NO_ROLE``.
    """

    def __init__(self, count, last=NO_ROLE - 1):
        self.count, self.last = count, last
        if not isinstance(count, int) or not 0 <= count <= NO_ROLE:
            raise ValueError(f"Number of roles must be 0 to {NO_ROLE}, not {count!r}")
        super().__init__(
            {
                "asked": In(8),
                "own": In(ROLE_WIDTH),
                **({"doors": In(count)} if count > 1 else {}),
                "role": Out(ROLE_WIDTH),
                "open": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.open.eq(1)
        m.d.comb += self.role.eq(Mux(self.asked > self.last + 1, NO_ROLE, self.asked - 1))
        with m.If(self.asked == 0):
            m.d.comb += self.role.eq(self.own)
        if self.count > 1:
            with m.Switch(self.role):
                for k in range(self.count):
                    with m.Case(k):
                        m.d.comb += self.open.eq(self.doors[k])
        return m


class SmpHeaderReader(wiring.Component):
    """Reads the first 12 bytes of a message (header and ID) from a receive ring.

    ``start`` for one cycle with ``base`` and ``offset`` held until ``done``, a strobe from which
    on ``header`` is valid (first byte in bits 7..0) until the next start. Single-beat reads in
    flight together; latency: memory latency + at most 5 cycles and one a misaligned byte.
    ``mem_cmd`` and ``mem_rdata`` are part of the owner's memory port.
    """

    def __init__(self, width, segment_log2):
        mem = MemorySignature(width)
        self.width, self.segment_log2 = width, segment_log2
        super().__init__(
            {
                "start": In(1),
                "base": In(ADDR_WIDTH - segment_log2),
                "offset": In(segment_log2),
                "done": Out(1),
                "header": Out(96),
                "mem_cmd": Out(stream.Signature(mem.cmd_layout)),
                "mem_rdata": In(stream.Signature(mem.rdata_layout)),
            }
        )

    # The beats that can hold the bytes enter a shift register from the top; it then moves down a
    # byte a cycle until the first byte is at the bottom: no barrel shifter.
    def elaborate(self, platform):
        m = Module()
        n = self.width // 8
        log2n = n.bit_length() - 1
        beats = (n - 1 + 12 + n - 1) // n
        held = Signal(beats * self.width)
        to_issue = Signal(range(beats + 1))
        to_take = Signal(range(beats + 1))
        place = Signal(self.segment_log2 - log2n)
        skip = Signal(log2n)
        cmd = self.mem_cmd
        m.d.comb += [
            self.header.eq(held),
            cmd.valid.eq(to_issue != 0),
            self.mem_rdata.ready.eq(1),
        ]
        m.d.comb += cmd.payload.addr.eq(Cat((place << log2n)[: self.segment_log2], self.base))
        with m.If(cmd.valid & cmd.ready):
            m.d.sync += [to_issue.eq(to_issue - 1), place.eq(place + 1)]
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.start):
                    m.d.sync += [
                        place.eq(self.offset[log2n:]),
                        skip.eq(self.offset[:log2n]),
                        to_issue.eq(beats),
                        to_take.eq(beats),
                    ]
                    m.next = "TAKE"
            with m.State("TAKE"):
                with m.If(self.mem_rdata.valid):
                    m.d.sync += [
                        held.eq(Cat(held, self.mem_rdata.payload.data)[self.width :]),
                        to_take.eq(to_take - 1),
                    ]
                    with m.If(to_take == 1):
                        m.next = "SHIFT"
            with m.State("SHIFT"):
                with m.If(skip == 0):
                    m.d.comb += self.done.eq(1)
                    m.next = "IDLE"
                with m.Else():
                    m.d.sync += [held.eq(held >> 8), skip.eq(skip - 1)]
        return m
