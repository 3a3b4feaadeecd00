"""Buffers between streams: skid buffer, FIFO, store-and-forward packet FIFO.

All obey the rules of :mod:`trebuchet.cores.stream`; proofs are in ``formal/buffers.py``.
The registers that a component keeps as attributes are no ports: the proofs' invariants name them.
"""

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .stream import PacketSignature

__all__ = ["NO_COLLISIONS", "BlockFifo", "PacketFifo", "SkidBuffer", "StreamFifo"]

#: For a memory of which no word is used that was read in the cycle in which it was written:
#: synthesis then need not care for that case, which costs two registers and a multiplexer a bit.
NO_COLLISIONS = {"no_rw_check": 1}


#: Bits of a list that is not worth a block RAM.
SMALL_LIST = 512


class BlockFifo(SyncFIFOBuffered):
    """Amaranth's :class:`~amaranth.lib.fifo.SyncFIFOBuffered`, its storage mostly in block RAM.

    For lists that are some ten places deep: as LUT RAM, which is what the tools choose by
    themselves, one of 64 places of six bits costs a hundred LUTs of an ECP5. With no more bits than
    that it is left to them all the same: a small board runs out of block RAMs first.
    """

    def elaborate(self, platform):
        m = super().elaborate(platform)
        if self.depth * self.width > SMALL_LIST:
            m.submodules.storage.attrs.update(NO_COLLISIONS, ram_style="block")
        return m


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
        self.skid = Signal(shape)
        self.skid_full = Signal()

    # `skid` catches the beat that arrives in the cycle in which `o` stalls, because `i.ready`
    # can only fall one cycle later.
    def elaborate(self, platform):
        m = Module()
        skid, skid_full = self.skid, self.skid_full
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


class _RamReader:
    """Output pipeline of a FIFO: the RAM's read latch, and a register behind it if asked for.

    A RAM is slow to read, so that what follows it should be a register wherever the path goes on.
    ``fetched`` tells that the latch holds a beat that has not moved on.
    """

    def __init__(self, ram, registered):
        self.port = ram.read_port()
        self.registered = registered
        self.fetched = Signal()

    def connect(self, m, o, *, available, addr):
        """Feed stream ``o`` (its raw payload) while ``available``; return "fetches now"."""
        step_ram, raw = Signal(), Value.cast(o.payload)
        m.d.comb += [self.port.addr.eq(addr), self.port.en.eq(step_ram)]
        with m.If(step_ram):
            m.d.sync += self.fetched.eq(available)
        if self.registered:
            step_out = Signal()
            m.d.comb += [step_out.eq(~o.valid | o.ready), step_ram.eq(~self.fetched | step_out)]
            with m.If(step_out):
                m.d.sync += [o.valid.eq(self.fetched), raw.eq(self.port.data)]
        else:
            m.d.comb += [step_ram.eq(~self.fetched | o.ready)]
            m.d.comb += [o.valid.eq(self.fetched), raw.eq(self.port.data)]
        return step_ram & available


class StreamFifo(wiring.Component):
    """First-in first-out buffer for a stream, in block RAM when it is large.

    =========  ===  =======================================================
    ``i``      In   stream of ``shape``
    ``o``      Out  stream of ``shape``
    ``level``  Out  beats inside, 0 to ``depth``
    =========  ===  =======================================================

    Parameters: ``shape``, any payload shape; ``depth``, at least 2 beats; ``registered``, whether
    ``o`` comes from registers (latency 3 cycles) or straight from the RAM's read latch (latency
    2); by default registered from 65 beats on, where the RAM is a block RAM. One beat a cycle;
    with a depth of 2, two beats every three cycles. ``i.ready`` comes from a register and
    falls when ``depth`` beats are inside. Reset: empty.
    """

    def __init__(self, shape, depth, *, registered=None):
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"FIFO depth must be an integer of at least 2, not {depth!r}")
        self.shape, self.depth = shape, depth
        self.registered = depth > 64 if registered is None else bool(registered)
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )
        bits = len(Value.cast(self.i.payload))
        self.ram = Memory(shape=unsigned(bits), depth=depth, init=[], attrs=NO_COLLISIONS)
        self.write_port = self.ram.write_port()
        self.reader = _RamReader(self.ram, self.registered)
        self.write, self.read = Signal(range(depth)), Signal(range(depth))

    # The output pipeline fetches a beat as soon as one is there, so the RAM never holds all
    # `depth` beats and equal pointers mean that it is empty.
    def elaborate(self, platform):
        m = Module()
        m.submodules.ram = self.ram
        port = self.write_port
        puts, gets = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        m.d.comb += [
            self.i.ready.eq(self.level != self.depth),
            port.addr.eq(self.write),
            port.data.eq(Value.cast(self.i.payload)),
            port.en.eq(puts),
        ]
        m.d.sync += self.level.eq(self.level + puts - gets)
        with m.If(puts):
            m.d.sync += self.write.eq(self._next(self.write))
        available = self.write != self.read
        with m.If(self.reader.connect(m, self.o, available=available, addr=self.read)):
            m.d.sync += self.read.eq(self._next(self.read))
        return m

    def _next(self, pointer):
        return Mux(pointer == self.depth - 1, 0, pointer + 1)


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
        # All of a beat but `error`, the topmost bit.
        self.stored = unsigned(len(Value.cast(self.i.payload)) - 1)
        self.ram = Memory(shape=self.stored, depth=depth, init=[], attrs=NO_COLLISIONS)
        self.write_port = self.ram.write_port()
        self.reader = _RamReader(self.ram, registered=True)
        bits = depth.bit_length()
        self.write, self.commit, self.read = Signal(bits), Signal(bits), Signal(bits)
        self.skipping = Signal()  # the packet coming in has overflowed

    # Three pointers into a ring: `write` runs ahead with the packet that is coming in, `commit`
    # follows when it has ended well, `read` follows `commit`. Dropping sets `write` back.
    # Pointers have one bit more than an address, so that full and empty differ.
    def elaborate(self, platform):
        m = Module()
        m.submodules.ram = self.ram
        write, commit, read, skipping = self.write, self.commit, self.read, self.skipping
        port, beat = self.write_port, self.i.payload
        full, hopeless = Signal(), Signal()
        m.d.comb += [
            full.eq((write ^ read) == self.depth),
            # The storage holds nothing but the packet coming in.
            hopeless.eq((write ^ commit) == self.depth),
            self.i.ready.eq(1 if self.drop_when_full else ~full | hopeless | skipping),
            port.addr.eq(write[:-1]),
            port.data.eq(Value.cast(beat)[: self.stored.width]),
            port.en.eq(self.i.valid & ~full & ~skipping),
        ]
        m.d.sync += [self.dropped_error.eq(0), self.dropped_overflow.eq(0)]
        with m.If(self.i.valid & self.i.ready):
            with m.If(full | skipping):
                m.d.sync += skipping.eq(~beat.last)
                with m.If(beat.last):
                    m.d.sync += [write.eq(commit), self.dropped_overflow.eq(1)]
            with m.Elif(beat.last & beat.error):
                m.d.sync += [write.eq(commit), self.dropped_error.eq(1)]
            with m.Else():
                m.d.sync += write.eq(write + 1)
                with m.If(beat.last):
                    m.d.sync += commit.eq(write + 1)
        fetches = self.reader.connect(m, self.o, available=read != commit, addr=read[:-1])
        with m.If(fetches):
            m.d.sync += read.eq(read + 1)
        return m
