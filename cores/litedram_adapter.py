"""From a memory port to LiteDRAM's native port.

:class:`LiteDramAdapter` answers one memory port (:mod:`trebuchet.cores.memory`) with the three
handshakes of a LiteDRAM native port, given as plain signals, so that neither LiteX nor Migen is
imported here.

LiteDRAM's native port looks like three streams and is not (litedram/frontend/dma.py relies on
the same facts):

- ``wdata``: the controller takes a word in the cycle in which it raises ``wdata.ready``, whatever
  ``wdata.valid`` says, a fixed time after it accepted the command. Here a write command is offered
  only after its data word is queued.
- ``rdata``: a word is there in one cycle only, whatever ``rdata.ready`` says. Here a read command
  is offered only after a place for its word is reserved.
- Read data come in command order. Nothing is promised between ports for *different* addresses.

Why ``wdone`` keeps rule 5 of the memory port (any later read on any port sees the data): an
address belongs to one bank, and a bank's machine executes its commands in the order in which
the crossbar accepted them, from whichever port. A read of an address that is accepted after a
write of it is therefore executed after it. ``wdone`` is given when the burst's last command was
accepted *and* its last word was taken. The same holds towards the CPU's own native port, as long as
nothing is held back in a cache in front of it: the SoC has no L2 cache, the CPU's data
cache writes through, and firmware flushes it before it reads what gateware wrote.
"""

from amaranth import unsigned
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from .memory import BEATS_WIDTH, MemorySignature

__all__ = ["LiteDramAdapter", "NativePortSignature"]

#: Consecutive commands of one direction before the other direction gets its turn.
TURN = 16


class NativePortSignature(wiring.Signature):
    """A LiteDRAM native port, from the side of its user.

    ===========  ====  ========================================================
    member       dir   payload
    ===========  ====  ========================================================
    ``cmd``      Out   ``we``, ``addr`` (in words of ``width`` bits)
    ``wdata``    Out   ``data``, ``we`` (a bit per byte)
    ``rdata``    In    ``data``
    ===========  ====  ========================================================

    LiteDRAM's ``cmd.last`` and ``flush`` concern its width converters only and are left out.
    """

    def __init__(self, width, addr_width):
        if width not in (32, 64, 128, 256, 512):
            raise ValueError(f"Native width must be 32, 64, 128, 256 or 512 bits, not {width!r}")
        if not isinstance(addr_width, int) or not 1 <= addr_width <= 32:
            raise ValueError(f"Native address width must be 1 to 32 bits, not {addr_width!r}")
        self.width = width
        self.addr_width = addr_width
        self.cmd_layout = data.StructLayout({"we": unsigned(1), "addr": unsigned(addr_width)})
        self.wdata_layout = data.StructLayout({"data": unsigned(width), "we": unsigned(width // 8)})
        self.rdata_layout = data.StructLayout({"data": unsigned(width)})
        super().__init__(
            {
                "cmd": Out(stream.Signature(self.cmd_layout)),
                "wdata": Out(stream.Signature(self.wdata_layout)),
                "rdata": In(stream.Signature(self.rdata_layout)),
            }
        )

    def __eq__(self, other):
        return (
            isinstance(other, NativePortSignature)
            and self.width == other.width
            and self.addr_width == other.addr_width
        )

    def __repr__(self):
        return f"NativePortSignature(width={self.width}, addr_width={self.addr_width})"


class LiteDramAdapter(wiring.Component):
    """Memory port on one side, LiteDRAM native port of at least that width on the other.

    ===========  ==========================  ==================================================
    member       signature                   meaning
    ===========  ==========================  ==================================================
    ``mem``      In(MemorySignature)         the requester
    ``native``   Out(NativePortSignature)    LiteDRAM
    ===========  ==========================  ==================================================

    The beats of a burst that fall into one native word become one native command, with byte
    enables when they are written. Reads and writes run independently of each other: a read behind
    a write command whose data are late is not held up until four write commands wait. All
    bursts come back in command order, whatever their tags. Addresses wrap at the native port's
    size.

    Throughput: a beat a cycle in each direction; a native command a cycle. Latency of a read, from
    ``mem.cmd`` to the first ``mem.rdata``: 4 cycles more than the native port's. Reset: empties
    everything; LiteDRAM must be reset at the same time (it would go on answering).

    Parameters
    ----------
    width : int
        Data path of the memory port, in bits.
    tag_width : int
        Bits of its tags.
    native_width : int
        Data path of the native port, in bits: ``width`` or a larger power of two.
    addr_width : int
        Address width of the native port, in bits (words).
    depth : int
        Words of the read queue, a power of two. To stream, it must cover the native port's
        latency.
    """

    def __init__(self, width=32, tag_width=2, native_width=128, addr_width=23, depth=16):
        mem = MemorySignature(width, tag_width)
        native = NativePortSignature(native_width, addr_width)
        if native_width < width:
            raise ValueError(
                f"Native width must be at least the memory port's {width} bits, "
                f"not {native_width!r}"
            )
        if depth not in (16, 32, 64, 128):
            raise ValueError(f"Depth must be 16, 32, 64 or 128 words, not {depth!r}")
        self._width = width
        self._tag_width = tag_width
        self._native_width = native_width
        self._ratio = native_width // width
        self._depth = depth
        self._byte_bits = exact_log2(width // 8)
        self._lane_bits = exact_log2(self._ratio)
        self._word_bits = addr_width
        # How a burst lies in native words: its first beat's place, its length, whose it is.
        self._cut = data.StructLayout(
            {"lane": self._lane_bits, "beats": BEATS_WIDTH, "tag": tag_width}
        )
        super().__init__({"mem": In(mem), "native": Out(native)})

    # A command goes to the write queue or the read queue. The write side packs beats into words and
    # queues word and address together, so an address in the queue means that its data are there.
    # The read side turns a burst into word addresses and reserves a place for each; the unpacker
    # works off the same bursts against the words that come back.

    def elaborate(self, platform):
        m = Module()
        burst = data.StructLayout({"addr": self._word_bits, "cut": self._cut})
        m.submodules.writes = writes = SyncFIFO(width=burst.size, depth=4)
        m.submodules.reads = reads = SyncFIFO(width=burst.size, depth=4)

        cmd = self.mem.cmd
        taken = data.View(burst, Signal(burst, name="taken"))
        lane_at, word_at = self._byte_bits, self._byte_bits + self._lane_bits
        m.d.comb += [
            taken.addr.eq(cmd.p.addr[word_at:]),
            taken.cut.lane.eq(cmd.p.addr[lane_at:word_at]),
            taken.cut.beats.eq(cmd.p.beats),
            taken.cut.tag.eq(cmd.p.tag),
            writes.w_data.eq(taken),
            reads.w_data.eq(taken),
            cmd.ready.eq(Mux(cmd.p.write, writes.w_rdy, reads.w_rdy)),
            writes.w_en.eq(cmd.valid & cmd.p.write),
            reads.w_en.eq(cmd.valid & ~cmd.p.write),
        ]
        write_addr = self._write_side(m, writes, burst)
        read_addr = self._read_side(m, reads, burst)
        self._issue(m, write_addr, read_addr)
        return m

    def _write_side(self, m, writes, burst):
        """Pack beats into native words; return the queue of addresses whose data are queued."""
        n = self._width // 8
        word = data.StructLayout(
            {
                "data": self._native_width,
                "we": self._native_width // 8,
                "last": 1,
                "tag": self._tag_width,
            }
        )
        m.submodules.words = words = SyncFIFO(width=word.size, depth=16)
        m.submodules.write_addr = addrs = SyncFIFO(width=self._word_bits, depth=16)
        # One place for each burst whose words are on their way, so `wdone` never overflows.
        m.submodules.done = done = SyncFIFO(width=max(1, self._tag_width), depth=8)
        bursts = Signal(range(9))

        head = data.View(burst, writes.r_data)
        beat = self.mem.wdata
        active = Signal()
        addr = Signal(self._word_bits)
        lane = Signal(self._lane_bits)
        left = Signal(BEATS_WIDTH)
        tag = Signal(self._tag_width)
        start = Signal()
        m.d.comb += [
            start.eq(~active & writes.r_rdy & (bursts != 8)),
            writes.r_en.eq(start),
        ]
        with m.If(start):
            m.d.sync += [
                active.eq(1),
                addr.eq(head.addr),
                lane.eq(head.cut.lane),
                left.eq(head.cut.beats),
                tag.eq(head.cut.tag),
            ]

        # `packed` holds a finished or growing word; `full` says that it waits to be queued.
        packed = data.View(word, Signal(word, name="packed"))
        full = Signal()
        push = Signal()
        packed_addr = Signal(self._word_bits)
        # For the invariants of the proofs, as the other registers that are attributes.
        self.packer = active, addr, lane, left, tag, full, packed, packed_addr, bursts
        m.d.comb += [
            push.eq(full & words.w_rdy & addrs.w_rdy),
            words.w_data.eq(packed),
            words.w_en.eq(push),
            addrs.w_data.eq(packed_addr),
            addrs.w_en.eq(push),
            beat.ready.eq(active & (~full | push)),
        ]
        with m.If(push):
            m.d.sync += [full.eq(0), packed.we.eq(0)]
        with m.If(beat.valid & beat.ready):
            ends_word = lane == self._ratio - 1
            ends_burst = left == 0
            for i in range(self._ratio):
                with m.If(lane == i):
                    m.d.sync += [
                        packed.data[i * self._width : (i + 1) * self._width].eq(beat.p.data),
                        packed.we[i * n : (i + 1) * n].eq(beat.p.strb),
                    ]
            m.d.sync += [
                full.eq(ends_word | ends_burst),
                packed.last.eq(ends_burst),
                packed.tag.eq(tag),
                packed_addr.eq(addr),
                lane.eq(lane + 1),
                addr.eq(addr + ends_word),
                left.eq(left - 1),
                active.eq(~ends_burst),
            ]

        native = self.native.wdata
        sent = data.View(word, words.r_data)
        finished = Signal()
        m.d.comb += [
            native.valid.eq(words.r_rdy),
            native.p.data.eq(sent.data),
            native.p.we.eq(sent.we),
            words.r_en.eq(native.ready),
            finished.eq(words.r_rdy & native.ready & sent.last),
            done.w_data.eq(sent.tag),
            done.w_en.eq(finished),
            self.mem.wdone.valid.eq(done.r_rdy),
            self.mem.wdone.p.tag.eq(done.r_data),
            done.r_en.eq(self.mem.wdone.ready),
        ]
        m.d.sync += bursts.eq(bursts + start - (done.r_rdy & done.r_en))
        return addrs

    def _read_side(self, m, reads, burst):
        """Reserve places and unpack; return the stream of word addresses to read."""
        m.submodules.back = back = SyncFIFOBuffered(width=self._native_width, depth=self._depth)
        m.submodules.unpack = unpack = SyncFIFO(width=self._cut.size, depth=8)
        head = data.View(burst, reads.r_data)

        # Ask: a burst of `beats + 1` beats from lane `l` on touches (l + beats) / ratio + 1 words.
        active = Signal()
        addr = Signal(self._word_bits)
        words = Signal(BEATS_WIDTH + 1)
        reserved = Signal(range(self._depth + 1))
        request = stream.Signature(data.StructLayout({"addr": self._word_bits})).create()
        start = Signal()
        taken = Signal()
        self.asker, self.asks = (active, addr, words, reserved), request
        m.d.comb += [
            start.eq(~active & reads.r_rdy & unpack.w_rdy),
            reads.r_en.eq(start),
            unpack.w_data.eq(head.cut),
            unpack.w_en.eq(start),
            request.valid.eq(active & (reserved != self._depth)),
            request.p.addr.eq(addr),
            taken.eq(request.valid & request.ready),
        ]
        with m.If(start):
            m.d.sync += [
                active.eq(1),
                addr.eq(head.addr),
                words.eq((head.cut.lane + head.cut.beats)[self._lane_bits :]),
            ]
        with m.If(taken):
            m.d.sync += [addr.eq(addr + 1), words.eq(words - 1), active.eq(words != 0)]

        native = self.native.rdata
        pop = Signal()
        m.d.comb += [
            native.ready.eq(1),
            back.w_data.eq(native.p.data),
            back.w_en.eq(native.valid),
            back.r_en.eq(pop),
        ]
        m.d.sync += reserved.eq(reserved + taken - pop)
        self._unpacker(m, back, unpack, pop)
        return request

    def _unpacker(self, m, back, unpack, pop):
        """Cut words into beats behind a register; ``pop`` is 1 when a word is used up."""
        head = data.View(self._cut, unpack.r_data)
        out = self.mem.rdata
        fresh = Signal(init=1)
        lane = Signal(self._lane_bits)
        left = Signal(BEATS_WIDTH)
        lane_now = Signal(self._lane_bits)
        left_now = Signal(BEATS_WIDTH)
        move = Signal()
        ends = Signal()
        self.unpacker = fresh, lane, left
        m.d.comb += [
            lane_now.eq(Mux(fresh, head.lane, lane)),
            left_now.eq(Mux(fresh, head.beats, left)),
            move.eq(unpack.r_rdy & back.r_rdy & (~out.valid | out.ready)),
            ends.eq(left_now == 0),
            pop.eq(move & (ends | (lane_now == self._ratio - 1))),
            unpack.r_en.eq(move & ends),
        ]
        with m.If(out.ready):
            m.d.sync += out.valid.eq(0)
        with m.If(move):
            m.d.sync += [
                out.valid.eq(1),
                out.p.data.eq(back.r_data.word_select(lane_now, self._width)),
                out.p.tag.eq(head.tag),
                out.p.last.eq(ends),
                lane.eq(lane_now + 1),
                left.eq(left_now - 1),
                fresh.eq(ends),
            ]

    def _issue(self, m, write_addr, read_addr):
        """Choose between the directions, keeping one for a while: turning the bus is dear."""
        cmd = self.native.cmd
        free = Signal()
        writing = Signal()
        turn = Signal(range(TURN))
        choose_write = Signal()
        self.turns = writing, turn
        tired = turn == TURN - 1
        m.d.comb += [
            free.eq(~cmd.valid | cmd.ready),
            choose_write.eq(
                Mux(writing, ~(tired & read_addr.valid), tired | ~read_addr.valid)
                & write_addr.r_rdy
            ),
            write_addr.r_en.eq(free & choose_write),
            read_addr.ready.eq(free & ~choose_write),
        ]
        with m.If(free):
            m.d.sync += cmd.valid.eq(0)
            with m.If(choose_write | read_addr.valid):
                m.d.sync += [
                    cmd.valid.eq(1),
                    cmd.p.we.eq(choose_write),
                    cmd.p.addr.eq(Mux(choose_write, write_addr.r_data, read_addr.p.addr)),
                    writing.eq(choose_write),
                ]
                with m.If(choose_write != writing):
                    m.d.sync += turn.eq(0)
                with m.Elif(~tired):
                    m.d.sync += turn.eq(turn + 1)
