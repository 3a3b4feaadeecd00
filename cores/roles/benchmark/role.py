"""A role that takes as long as it is told and makes up its result.

Source: distributed-fpga-framework, 4.2.2 (benchmarking configuration). ``models/roles.py`` is the
naive model.
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring

from ....models.roles import BENCHMARK_SEEDS
from ...csr import Register, RegisterBlock
from ...engines.contract import StreamEngineSignature
from ...tcp.service import LENGTH_WIDTH
from ..needs import ResultConfig, RoleNeeds
from ..packet_role import PacketRole

__all__ = ["BENCHMARK_BLOCK", "BenchmarkBody", "BenchmarkRole"]

#: Bytes copied from operand to result; neither may be shorter.
HEAD = 16

BENCHMARK_BLOCK = RegisterBlock(
    "benchmark",
    (
        Register(
            "delay", "rw", 32, "cycles between the operand's last byte and the result's first"
        ),
        Register("output_length", "rw", LENGTH_WIDTH, "bytes of result; 0: as many as the operand"),
    ),
    "the benchmark role: how long it takes and how much it answers",
)


class BenchmarkBody(wiring.Component):
    """Takes a packet, waits, gives a packet of a set size.

    ========  ===  ================================================================================
    ``i``     In   packet stream: the operand, at least 16 bytes
    ``o``     Out  packet stream: its first 16 bytes, then noise of four xorshift32 generators in
                   turn, the same for each packet
    ``csr``   In   :data:`BENCHMARK_BLOCK`; looked at when the operand has ended
    ========  ===  ================================================================================

    Parameters: ``width``, data path in bits. Throughput: a beat a cycle in, later a beat a cycle
    out. Latency: ``delay`` + 2 cycles from last to first beat. Back-pressure: ``i`` waits while
    ``o`` is not taken. Reset: idle. Bad input: ``output_length`` from 1 to 15 counts as 16; a
    damaged packet stays so. It promises neither growth nor latency (``limits``): both are set.
    """

    def __init__(self, width=32):
        self.width = width
        super().__init__(StreamEngineSignature(width, BENCHMARK_BLOCK))

    # The head and the generators are shift registers of 16 bytes whose low bits are the next beat:
    # a generator steps as its word leaves, so the stream is the same for every width.
    def elaborate(self, platform):
        m = Module()
        n = self.width // 8
        i, o = self.i.payload, self.o.payload
        beats = HEAD // n
        head, noise = Signal(8 * HEAD), Signal(8 * HEAD)
        left = Signal(range(beats + 1))  # beats of the head still to come, or to go
        size, wait, damaged = Signal(LENGTH_WIDTH), Signal(32), Signal()
        with m.FSM(name="body"):
            with m.State("TAKE"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    m.d.sync += [
                        size.eq(Mux(i.first, 0, size) + n - i.empty),
                        left.eq(Mux(i.first, beats - 1, left - (left != 0))),
                    ]
                    with m.If(i.first | (left != 0)):
                        m.d.sync += head.eq(Cat(head, i.data)[self.width :])
                    with m.If(i.last):
                        m.d.sync += damaged.eq(i.error)
                        m.next = "SIZE"
            with m.State("SIZE"):
                wanted = self.csr.output_length
                m.d.sync += wait.eq(self.csr.delay)
                m.d.sync += [left.eq(beats), o.first.eq(1)]
                m.d.sync += noise.eq(sum(x << 32 * k for k, x in enumerate(BENCHMARK_SEEDS)))
                with m.If(wanted != 0):
                    m.d.sync += size.eq(Mux(wanted < HEAD, HEAD, wanted))
                m.next = "WAIT"
            with m.State("WAIT"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += [
                    self.o.valid.eq(1),
                    o.data.eq(Mux(left != 0, head, noise)[: self.width]),
                    o.last.eq(size <= n),
                    o.empty.eq(Mux(o.last, n - size, 0)),
                    o.error.eq(o.last & damaged),
                ]
                with m.If(self.o.ready):
                    m.d.sync += [size.eq(size - n), o.first.eq(0), head.eq(head >> self.width)]
                    with m.If(left != 0):
                        m.d.sync += left.eq(left - 1)
                    with m.Else():
                        m.d.sync += noise.eq(
                            Cat(noise, self._step(noise[: self.width]))[self.width :]
                        )
                    with m.If(o.last):
                        m.next = "TAKE"
        return m

    @staticmethod
    def _step(words):
        """Each 32-bit word after one step of xorshift32."""
        stepped = []
        for k in range(len(words) // 32):
            x = words.word_select(k, 32)
            x = x ^ (x << 13)[:32]
            x = x ^ (x >> 17)
            stepped.append((x ^ (x << 5))[:32])
        return Cat(stepped)


class BenchmarkRole(PacketRole):
    """Reads the operand, waits, writes a result of a set size: the system without compute.

    Parameters: ``width``, ``tag_width`` of the memory port. The result is that of
    :class:`BenchmarkBody`; an operand of fewer than 16 bytes is answered ``BAD_LENGTH``. Ports,
    latency beside ``delay``, reset: :class:`~trebuchet.cores.roles.packet_role.PacketRole`. Option
    in a plan: ``result_bytes``.
    """

    Config = ResultConfig

    @staticmethod
    def needs(config):
        """What it needs of a shell: room for ``result_bytes``, whatever the operand."""
        return RoleNeeds(largest_result=lambda _: config.result_bytes)

    @classmethod
    def place(cls, config, place):
        """The role; its option concerns the shell alone."""
        return cls(place.width, place.tag_width)

    def __init__(self, width=32, tag_width=2):
        lengths = range(HEAD, 1 << LENGTH_WIDTH)
        super().__init__(BenchmarkBody(width), width, tag_width, lengths)
