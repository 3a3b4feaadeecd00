"""Proofs of the skid buffer and the FIFO in ``cores/buffers.py``.

Contract, over public ports: the stream rules at the output, given those at the input; what comes
out is what went in (:class:`~trebuchet.formal.stream.Queue`); ``valid`` follows within a bound,
whatever ``ready`` does; the room that the data sheet promises.

Each harness then states, apart, the invariants that make these inductive, in terms of the core's
own registers.

Not proved: behaviour under a reset while running; other widths and depths than those named (the
circuits do not differ but in constants).
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value

from .kit.proof import Mutant, Proof
from .stream import Queue, cover_run, free, new_harness, stream_rules, within

__all__ = ["PROOFS", "bind_fifo", "fifo_invariants", "word_in_ram"]


def _drive(m, dut):
    """Let the solver drive both sides of a buffer, within the rules."""
    free(m, dut.i.valid, dut.i.payload, dut.o.ready)
    stream_rules(m, dut.i, Assume, "i")
    stream_rules(m, dut.o, Assert, "o")
    return dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready


def _queue(m, dut, puts, gets, capacity):
    return Queue(
        m,
        puts=puts,
        put_word=dut.i.payload,
        gets=gets,
        get_valid=dut.o.valid,
        get_word=dut.o.payload,
        capacity=capacity,
    )


def _cover_buffer(m, queue, puts, gets, capacity):
    """Full, then empty again with the chosen word gone by; a beat in and out every cycle."""
    was_full, waited = Signal(), Signal()
    with m.If(queue.level == capacity):
        m.d.sync += was_full.eq(1)
    with m.If(queue.inside & (queue.place == capacity - 1) & (queue.word != 0)):
        m.d.sync += waited.eq(1)
    m.d.comb += Cover(was_full & waited & (queue.level == 0))
    cover_run(m, puts & gets, 4, "both")


class SkidBufferProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        puts, gets = _drive(m, dut)
        queue = _queue(m, dut, puts, gets, capacity=2)
        m.d.comb += Assert(dut.o.valid == (queue.level != 0))
        m.d.comb += Assert(dut.i.ready == (queue.level != 2))
        _cover_buffer(m, queue, puts, gets, 2)

        # Invariants.
        with m.If(queue.inside & (queue.place == 1)):
            m.d.comb += Assert(dut.skid == queue.word)
        return m


def word_in_ram(m, dut, queue, addr):
    """Invariant of a RAM ring: the chosen word lies where its place in the queue says."""
    place, peek = queue.place, dut.ram.read_port(domain="comb")
    before = Signal(range(3))  # beats that have left the RAM but not the FIFO
    fetched = dut.reader.fetched
    word = Value.cast(queue.word)[: len(peek.data)]
    m.d.comb += before.eq(fetched + (dut.o.valid if dut.reader.registered else 0))
    m.d.comb += peek.addr.eq(addr(place - before))
    with m.If(queue.inside):
        with m.If(place >= before):
            m.d.comb += Assert(peek.data == word)
        with m.Elif(place == before - 1):
            with m.If(fetched):
                m.d.comb += Assert(dut.reader.port.data == word)
    return before


def bind_fifo(m, fifo, delay):
    """The contract of a FIFO over its ports ``i``, ``o`` and ``level``: bind it to any FIFO.

    Drives the FIFO. ``delay``: cycles until what is inside is on offer. Returns the queue that the
    FIFO must be, and the register that counts how long something inside has not been on offer.
    """
    puts, gets = _drive(m, fifo)
    queue = _queue(m, fifo, puts, gets, capacity=fifo.depth)
    m.d.comb += Assert(fifo.level == queue.level)
    m.d.comb += Assert(fifo.i.ready == (queue.level != fifo.depth))
    waited = within(m, (queue.level == 0) | fifo.o.valid, delay, "o")
    _cover_buffer(m, queue, puts, gets, fifo.depth)
    return queue, waited


class StreamFifoProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        queue, waited = bind_fifo(m, dut, delay=2 if dut.registered else 1)
        fifo_invariants(m, dut, queue, waited)
        return m


def fifo_invariants(m, fifo, queue, waited=None):
    """What induction needs to know about a ``StreamFifo`` that is a ``Queue``.

    ``waited``: for how many cycles ``o.valid`` has been 0 with something inside.
    """

    def addr(k):
        total = Signal(range(4 * fifo.depth))
        m.d.comb += total.eq(fifo.read + k[: queue.bits])
        return Mux(total >= fifo.depth, total - fifo.depth, total)

    before = word_in_ram(m, fifo, queue, addr)
    held = Mux(fifo.write >= fifo.read, 0, fifo.depth) + fifo.write - fifo.read
    m.d.comb += [
        Assert(fifo.level == queue.level),
        Assert(fifo.write < fifo.depth),
        Assert(fifo.read < fifo.depth),
        Assert(queue.level == held + before),
        Assert(fifo.reader.fetched | (held <= 1)),
    ]
    if fifo.registered and waited is not None:
        arrives = fifo.o.valid | (fifo.reader.fetched & (waited == 1))
        m.d.comb += Assert((waited == 0) | arrives)


PROOFS = (
    Proof(
        name="skid_buffer",
        quick=True,
        core="cores.buffers.SkidBuffer(4)",
        says="a queue of 2 that keeps the stream rules; full speed; no delay beyond one cycle",
        module="trebuchet.cores.buffers",
        build=lambda cores: SkidBufferProof(cores.SkidBuffer(4)),
        depth=3,
        cover_depth=12,
        mutants=(
            Mutant("forgets_skid", "self.i.valid | skid_full", "self.i.valid"),
            Mutant(
                "overwrites_skid",
                "self.i.valid & ~skid_full",
                "self.i.valid",
                within="SkidBuffer.elaborate",
            ),
        ),
    ),
    *(
        Proof(
            name=f"stream_fifo_{name}",
            core=f"cores.buffers.StreamFifo(4, {depth}, registered={registered})",
            says=f"a queue of {depth} that keeps the stream rules; level is exact; bounded delay",
            module="trebuchet.cores.buffers",
            build=lambda cores, d=depth, r=registered: StreamFifoProof(
                cores.StreamFifo(4, d, registered=r)
            ),
            depth=4,
            cover_depth=20,
            mutants=(
                Mutant("one_too_many", "self.level != self.depth", "self.level <= self.depth"),
                Mutant("no_wrap", "pointer == self.depth - 1", "pointer == self.depth", 16),
            ),
        )
        for name, depth, registered in (("latched", 3, False), ("registered", 5, True))
    ),
)
