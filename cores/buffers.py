"""Buffers between streams: skid buffer, FIFO, store-and-forward packet FIFO.

All obey the rules of :mod:`trebuchet.cores.stream`; proofs are in ``formal/buffers.py``.
"""

from amaranth.hdl import Module, Signal, Value, unsigned
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .stream import PacketSignature

__all__ = ["PacketFifo", "SkidBuffer", "StreamFifo"]


class SkidBuffer(wiring.Component):
    """A register stage for a stream that cuts every path, forward and backward.

    =========  ===  =====================================
    ``i``      In   stream of ``shape``
    ``o``      Out  stream of ``shape``
    =========  ===  =====================================

    Parameters: ``shape``, any payload shape. Latency 1 cycle, one beat a cycle, room for two
    beats. ``o.valid``, ``o.payload`` and ``i.ready`` come from registers. ``i.ready`` falls one
    cycle after ``o`` stalls. Reset: empty; what is inside is lost.
    """

    def __init__(self, shape):
        self.shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    # `skid` catches the beat that arrives in the cycle in which `o` stalls, because `i.ready`
    # can only fall one cycle later.
    def elaborate(self, platform):
        m = Module()
        skid = Signal.like(self.i.payload)
        skid_full = Signal()

        m.d.comb += self.i.ready.eq(~skid_full)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid | skid_full), skid_full.eq(0)]
            with m.If(skid_full):
                m.d.sync += self.o.payload.eq(skid)
            with m.Else():
                m.d.sync += self.o.payload.eq(self.i.payload)
        with m.Elif(self.i.valid & ~skid_full):
            m.d.sync += [skid.eq(self.i.payload), skid_full.eq(1)]
        return m


class StreamFifo(wiring.Component):
    """First-in first-out buffer for a stream, in block RAM when it is large.

    =========  ===  =======================================================
    ``i``      In   stream of ``shape``
    ``o``      Out  stream of ``shape``
    ``level``  Out  beats inside, 0 to ``depth``
    =========  ===  =======================================================

    Parameters: ``shape``, any payload shape; ``depth``, at least 2 beats. Latency 2 cycles, one
    beat a cycle. ``i.ready`` falls when ``depth`` beats are inside. ``o.payload`` comes straight
    from the RAM's read port; put a :class:`SkidBuffer` behind it where that path is long.
    Reset: empty. The storage is :class:`amaranth.lib.fifo.SyncFIFOBuffered`.
    """

    def __init__(self, shape, depth):
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"FIFO depth must be an integer of at least 2, not {depth!r}")
        self.shape, self.depth = shape, depth
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        raw_i, raw_o = Value.cast(self.i.payload), Value.cast(self.o.payload)
        m.submodules.fifo = inner = fifo.SyncFIFOBuffered(width=len(raw_i), depth=self.depth)
        m.d.comb += [
            inner.w_data.eq(raw_i),
            inner.w_en.eq(self.i.valid),
            self.i.ready.eq(inner.w_rdy),
            raw_o.eq(inner.r_data),
            self.o.valid.eq(inner.r_rdy),
            inner.r_en.eq(self.o.ready),
            self.level.eq(inner.level),
        ]
        return m


class PacketFifo(wiring.Component):
    """Store-and-forward packet FIFO: a packet comes out only when all of it is in, and is good.

    ====================  ===  ================================================================
    ``i``                 In   packet stream
    ``o``                 Out  packet stream; ``error`` is always 0
    ``dropped_error``     Out  for one cycle: a packet that ended with ``error`` was dropped
    ``dropped_overflow``  Out  for one cycle: a packet that did not fit was dropped
    ====================  ===  ================================================================

    Parameters: ``width``, data path; ``depth``, beats of storage, a power of two of at least 2;
    ``drop_when_full``, what happens when a beat finds the storage full. True: its packet is
    dropped whole, and ``i.ready`` is always 1 (behind a MAC, which cannot wait). False:
    ``i.ready`` falls until the reader has made room.

    A packet of more than ``depth`` beats can never fit and is dropped in both modes, so nothing
    hangs. One that overflows *and* ends with ``error`` counts as overflow. The strobe comes one
    cycle after the packet's last beat.

    Latency 3 cycles from the last beat in to the first out, one beat a cycle each way; ``o``
    comes from registers. A beat leaves the storage when it moves into the two-beat output
    pipeline. Reset: empty; the first beat after it must start a packet.
    """

    def __init__(self, width=32, depth=512, drop_when_full=True):
        if not isinstance(depth, int) or depth < 2 or depth & (depth - 1):
            raise ValueError(f"Packet FIFO depth must be a power of two >= 2, not {depth!r}")
        self.width, self.depth, self.drop_when_full = width, depth, drop_when_full
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "dropped_error": Out(1),
                "dropped_overflow": Out(1),
            }
        )

    # Three pointers into a ring: `write` runs ahead with the packet that is coming in, `commit`
    # follows when it has ended well, `read` follows `commit`. Dropping sets `write` back.
    # Pointers have one bit more than an address, so that full and empty differ.
    def elaborate(self, platform):
        m = Module()
        bits = self.depth.bit_length() - 1
        stored = len(Value.cast(self.i.payload)) - 1  # all but `error`, the topmost bit
        m.submodules.ram = ram = Memory(shape=unsigned(stored), depth=self.depth, init=[])
        ram_w, ram_r = ram.write_port(), ram.read_port()
        write, commit, read = (Signal(bits + 1, name=n) for n in ("write", "commit", "read"))

        # Storage side.
        skipping = Signal()  # the packet coming in has overflowed
        full = Signal()
        hopeless = Signal()  # the storage holds nothing but the packet coming in
        m.d.comb += [
            full.eq((write ^ read) == self.depth),
            hopeless.eq((write ^ commit) == self.depth),
            self.i.ready.eq(1 if self.drop_when_full else ~full | hopeless | skipping),
            ram_w.addr.eq(write[:bits]),
            ram_w.data.eq(Value.cast(self.i.payload)[:stored]),
            ram_w.en.eq(self.i.valid & ~full & ~skipping),
        ]
        m.d.sync += [self.dropped_error.eq(0), self.dropped_overflow.eq(0)]
        with m.If(self.i.valid & self.i.ready):
            with m.If(full | skipping):
                m.d.sync += skipping.eq(~self.i.payload.last)
                with m.If(self.i.payload.last):
                    m.d.sync += [write.eq(commit), self.dropped_overflow.eq(1)]
            with m.Elif(self.i.payload.last & self.i.payload.error):
                m.d.sync += [write.eq(commit), self.dropped_error.eq(1)]
            with m.Else():
                m.d.sync += write.eq(write + 1)
                with m.If(self.i.payload.last):
                    m.d.sync += commit.eq(write + 1)

        # Output side: the RAM's own output, then a register, because a RAM is slow to read.
        fetched = Signal()
        step_out, step_ram = Signal(), Signal()
        m.d.comb += [
            step_out.eq(~self.o.valid | self.o.ready),
            step_ram.eq(~fetched | step_out),
            ram_r.addr.eq(read[:bits]),
            ram_r.en.eq(step_ram),
        ]
        with m.If(step_ram):
            m.d.sync += fetched.eq(read != commit)
            with m.If(read != commit):
                m.d.sync += read.eq(read + 1)
        with m.If(step_out):
            m.d.sync += self.o.valid.eq(fetched)
            m.d.sync += Value.cast(self.o.payload).eq(ram_r.data)
        return m
