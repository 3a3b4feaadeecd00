"""FIFOs of session numbers, their ends on the chip and their middles in external memory."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from ..memory import ADDR_WIDTH, MemorySignature

__all__ = ["PLACES", "ListServer"]

#: Places on the chip for all lists together: what one block RAM of 36 Kbit holds.
PLACES = 2048
#: Bytes of an entry in memory.
ENTRY_BYTES = 4
#: Cycles in a row that pushes, or fetches of heads, may take from a burst under way.
PATIENCE = 1


def _log2(value):
    return value.bit_length() - 1


def _power(value):
    return isinstance(value, int) and value > 0 and not value & (value - 1)


def _check(ok, what, expected, value):
    if not ok:
        raise ValueError(f"{what} must be {expected}, not {value!r}")


class _Side:
    """What reads and writes the RAM in a cycle: one of two, and the list that it is at."""

    def __init__(self, name, bits):
        self.name = name
        self.at = Signal(bits, name=f"at_{name}")
        self.fore, self.back, self.moves = (
            Signal(name=f"{k}_{name}") for k in ("fore", "back", "moves")
        )
        self.flip, self.deep = Signal(name=f"flip_{name}"), Signal(name=f"deep_{name}")


class _Pointer:
    """One number for each list: ``values`` as each side sees it at its list."""

    def __init__(self, en, values, following):
        self.en, self.values, self.following = en, values, following


class _Burst:
    """A block on its way, or the search for the next list that needs one."""

    def __init__(self, name, bits, block_bits):
        self.list, self.block = (
            Signal(bits, name=f"{name}_list"),
            Signal(block_bits, name=f"{name}_block"),
        )
        self.active, self.asks, self.wants = (
            Signal(name=f"{name}_{k}") for k in ("active", "asks", "wants")
        )


def _next(index, count):
    return Mux(index == count - 1, 0, index + 1)


class ListServer(wiring.Component):
    """``lists`` FIFOs of session numbers, each of which can hold every session once.

    ===========  ==========  =====================================================================
    ``push``     In          stream: ``session`` goes to the end of each list whose bit of
                             ``lists`` is set
    ``valid``    Out         a bit per list: ``head[k]`` is its oldest entry
    ``head``     Out, array  stays, with ``valid``, until it is popped
    ``pop``      In          a bit per list, only where ``valid``: the head leaves; any number at
                             once
    ``busy``     Out         a bit per list: 0 if it is empty, with nothing on its way
    ``mem``      Out         memory port
    ===========  ==========  =====================================================================

    Parameters: ``lists``, 1 to 16; ``sessions``, a power of two; ``width``, ``tag_width`` of the
    memory port; ``base``, address of :attr:`size` bytes, a multiple of a burst; ``block``, entries
    of a burst, a power of two; ``places`` on the chip, a power of two. A session must not be on a
    list twice (a bit in its record sees to that): so none overflows.

    A list with few entries never leaves the chip. Its head is valid 4 cycles after a push into the
    empty list, and again 3 after a pop. Pushes: one list a cycle, so ``push`` takes a beat a cycle
    if each names one. While a list is longer than its ends every other cycle is for bursts; with
    the ends full or empty the memory counts: a burst each way at a time, a list after the other.
    With 32 entries to a burst, 64 bits and a memory of 40 cycles that is an entry in and one out
    each 3 cycles. Fair: the lists take turns for bursts and for fetches of heads.

    Back-pressure: ``push.ready`` falls while a session's lists are served one after the other, and
    while a list's end on the chip is full, until the burst that makes room has gone: nothing but
    the memory is waited for. Reset: all lists empty; the responder must be reset too.
    """

    def __init__(self, lists, sessions, width=64, tag_width=0, *, base=0, block=32, places=PLACES):
        _check(isinstance(lists, int) and 1 <= lists <= 16, "Number of lists", "1 to 16", lists)
        _check(_power(block) and block >= 4, "Block", "a power of two >= 4", block)
        _check(_power(places), "Number of places", "a power of two", places)
        self.lists, self.list_bits = lists, (lists - 1).bit_length()
        self.block, self.ring = block, places >> self.list_bits + 1
        _check(
            self.ring >= 2 * block,
            "Number of places",
            f"at least {(4 * block) << self.list_bits}, two blocks for each end of a list",
            places,
        )
        _check(
            _power(sessions) and sessions >= 2 * block,
            "Number of sessions",
            f"a power of two >= {2 * block}, two blocks",
            sessions,
        )
        self.sessions, self.entry_bits = sessions, _log2(sessions)
        self.width, self.per_beat = width, width // (8 * ENTRY_BYTES)
        signature = MemorySignature(width, tag_width)
        _check(1 <= block // self.per_beat <= 64, "Block", f"1 to 64 beats of {width} bits", block)
        burst = block * ENTRY_BYTES
        _check(
            base % burst == 0 and 0 <= base <= (1 << ADDR_WIDTH) - self.size,
            "Base",
            f"a multiple of {burst} with {self.size} bytes inside the memory",
            base,
        )
        self.base = base
        entry = unsigned(self.entry_bits)
        super().__init__(
            {
                "push": In(stream.Signature(data.StructLayout({"lists": lists, "session": entry}))),
                "valid": Out(lists),
                "head": Out(entry).array(lists),
                "pop": In(lists),
                "busy": Out(lists),
                "mem": Out(signature),
            }
        )

    @property
    def size(self):
        """Bytes of memory: 4 for each session and list."""
        return self.lists * self.sessions * ENTRY_BYTES

    # A list is: head register, the ring that `flip` calls its front, blocks in memory ("deep"), the
    # ring that is its rear. Pushes go to the front as long as there is nothing behind it. A full
    # block of the rear is spilled; a block is refilled as soon as the front has room for it. With
    # the front empty and nothing in memory the rings change places, so that no entry is ever copied
    # from one to the other.
    #
    # The *write side* does one thing a cycle: a push or an entry of a refill. So does the *read
    # side*: it fetches a head or reads an entry to spill. Each side has its own pointers, which the
    # other only reads, so that nothing is written by both.
    def elaborate(self, platform):
        m = Module()
        m.submodules.ram = ram = Memory(
            shape=unsigned(self.entry_bits),
            depth=(2 * self.ring) << self.list_bits,
            init=[],
            attrs={**NO_COLLISIONS, "ram_style": "block"},
        )
        self.ram_w, self.ram_r = ram.write_port(), ram.read_port()
        n, bits = self.lists, max(1, self.list_bits)
        self.up = Signal()  # the pointers are cleared
        self.flip, self.deep = Signal(n), Signal(n)  # front is ring 1; there are blocks in memory
        self.some = Signal(n)  # it is worth a try to fetch its head
        self.long = Signal(n)  # its rear may have a block to spill
        self.write, self.read = _Side("w", bits), _Side("r", bits)
        place, block = _log2(self.ring) + 1, _log2(self.sessions // self.block)
        self.ends = [self._pointer(m, f"end{k}", place, self.write) for k in range(2)]
        self.starts = [self._pointer(m, f"start{k}", place, self.read) for k in range(2)]
        self.refilled = self._pointer(m, "refilled", block, self.write)
        self.spilled = self._pointer(m, "spilled", block, self.read)
        self.refill, self.spill = _Burst("refill", bits, block), _Burst("spill", bits, block)
        for side in (self.write, self.read):
            self._view(m, side)
        self._flags(m)
        self._refills(m)
        self._pushes(m)
        self._fetches(m)
        self._spills(m)
        self._commands(m)
        return m

    def _pointer(self, m, name, bits, side):
        """A number for each list, in LUT RAM, moved on by ``side`` and read by both."""
        memory = Memory(shape=unsigned(bits), depth=max(2, 1 << self.list_bits), init=[])
        m.submodules[name] = memory
        port = memory.write_port()
        reads = [memory.read_port(domain="comb") for _ in range(2)]
        m.d.comb += [reads[0].addr.eq(self.write.at), reads[1].addr.eq(self.read.at)]
        values = {"w": reads[0].data, "r": reads[1].data}
        following = (values[side.name] + 1)[:bits]
        m.d.comb += [
            port.addr.eq(side.at),
            port.data.eq(Mux(self.up, following, 0)),
            port.en.eq(~self.up),
        ]
        return _Pointer(port.en, values, following)

    def _view(self, m, side):
        """What a side sees of the list that it is at."""
        levels = []
        for k in range(2):
            level = Signal(_log2(self.ring) + 1, name=f"level{k}_{side.name}")
            ends, starts = self.ends[k].values[side.name], self.starts[k].values[side.name]
            m.d.comb += level.eq(ends - starts)
            levels.append(level)
        side.front, side.rear = (
            Signal.like(levels[0], name=f"{k}_{side.name}") for k in ("front", "rear")
        )
        m.d.comb += [
            side.flip.eq(self.flip.bit_select(side.at, 1)),
            side.deep.eq(self.deep.bit_select(side.at, 1)),
            side.front.eq(Mux(side.flip, levels[1], levels[0])),
            side.rear.eq(Mux(side.flip, levels[0], levels[1])),
        ]

    def _move(self, m, side, pointers, ring):
        """Move the pointer of a ring on; return the place that it was at."""
        place = Mux(ring, pointers[1].values[side.name], pointers[0].values[side.name])
        for k, pointer in enumerate(pointers):
            with m.If(side.moves & (ring == k)):
                m.d.comb += pointer.en.eq(1)
        return Cat(place[: _log2(self.ring)], ring, side.at[: self.list_bits])

    def _flags(self, m):
        """Flags of lists that one side sets and the other, or it, clears; to set wins."""
        n, index = self.lists, Signal.like(self.write.at, name="index")
        names = ("touched", "hollow", "grown", "short", "sinks", "rises", "turns")
        for name in names:
            setattr(self, name, Signal(n, name=name))
        m.d.sync += [
            self.some.eq(self.some & ~self.hollow | self.touched),
            self.long.eq(self.long & ~self.short | self.grown),
            self.deep.eq(self.deep & ~self.rises | self.sinks),
            self.flip.eq(self.flip ^ self.turns),
        ]
        with m.If(~self.up):
            m.d.comb += [self.write.at.eq(index), self.read.at.eq(index)]
            m.d.sync += [index.eq(index + 1), self.up.eq(index == (1 << self.list_bits) - 1)]

    def _slots(self, m, side, foreground, background):
        """Who has this cycle of a side: the background waits for :data:`PATIENCE` others."""
        waited = Signal(range(PATIENCE + 1), name=f"waited_{side.name}")
        m.d.comb += [
            side.fore.eq(self.up & foreground & ~(background & (waited == PATIENCE))),
            side.back.eq(self.up & background & ~side.fore),
        ]
        m.d.sync += waited.eq(Mux(background & side.fore, waited + 1, 0))

    def _pushes(self, m):
        side, n = self.write, self.lists
        self.todo, self.session = todo, session = Signal(n), Signal(self.entry_bits)
        first, chosen = Signal(n), Signal.like(side.at, name="push_list")
        direct, room, ring = Signal(), Signal(), Signal()
        for k in reversed(range(n)):
            with m.If(todo[k]):
                m.d.comb += [chosen.eq(k), first.eq(1 << k)]
        m.d.comb += [
            direct.eq(~side.deep & (side.rear == 0) & (side.front != self.ring)),
            room.eq(direct | (side.rear != self.ring)),
            ring.eq(side.flip ^ (side.fore & ~direct)),
            self.push.ready.eq(self.up & ((todo == 0) | ((todo == first) & side.fore & room))),
            self.ram_w.addr.eq(self._move(m, side, self.ends, ring)),
            self.ram_w.data.eq(Mux(side.back, self.entry, session)),
            self.ram_w.en.eq(side.moves),
        ]
        with m.If(side.fore):
            m.d.comb += [side.at.eq(chosen), side.moves.eq(room)]
            with m.If(room):
                m.d.comb += self.touched.eq(first)
                m.d.sync += todo.eq(todo & ~first)
                with m.If(~direct & (side.rear >= self.block - 1)):
                    m.d.comb += self.grown.eq(first)
        with m.If(self.push.valid & self.push.ready):
            m.d.sync += [todo.eq(self.push.payload.lists), session.eq(self.push.payload.session)]
        self._slots(m, side, todo.any(), self.refill.wants)

    def _refills(self, m):
        """Blocks from memory to the front's end; in each slot the write side's list is ours."""
        side, burst, mem = self.write, self.refill, self.mem
        lane = Signal(range(max(2, self.per_beat)), name="refill_lane")
        own = Array(1 << k for k in range(self.lists))[burst.list]
        lanes = Array(mem.rdata.payload.data.word_select(k, 32) for k in range(self.per_beat))
        self.entry = entry = Signal(self.entry_bits)
        ends, last = Signal(), Signal()  # last: the next block is the last one in memory
        unsafe = Signal()  # and it is not there yet
        m.d.comb += [
            entry.eq(lanes[lane]),
            last.eq(self.refilled.following == self.spilled.values["w"]),
            unsafe.eq(self.spill.active & (self.spill.list == burst.list) & last),
            ends.eq(lane == self.per_beat - 1),
            mem.rdata.ready.eq(side.back & burst.active & ends),
        ]
        with m.If(burst.active):
            m.d.comb += burst.wants.eq(mem.rdata.valid)
        with m.Elif(self.deep.bit_select(burst.list, 1)):
            m.d.comb += burst.wants.eq(1)
        with m.Else():
            m.d.sync += burst.list.eq(_next(burst.list, self.lists))
        with m.If(side.back):
            m.d.comb += side.at.eq(burst.list)
            with m.If(burst.active):
                m.d.comb += [side.moves.eq(1), self.touched.eq(own)]
                m.d.sync += lane.eq(Mux(ends, 0, lane + 1))
                with m.If(mem.rdata.payload.last & ends):
                    m.d.comb += [self.refilled.en.eq(1), self.rises.eq(Mux(last, own, 0))]
                    m.d.sync += burst.active.eq(0)
                    m.d.sync += burst.list.eq(_next(burst.list, self.lists))
            with m.Elif((side.front <= self.ring - self.block) & ~unsafe):
                m.d.sync += [burst.active.eq(1), burst.asks.eq(1)]
                m.d.sync += burst.block.eq(self.refilled.values["w"])
            with m.Else():
                m.d.sync += burst.list.eq(_next(burst.list, self.lists))

    def _commands(self, m):
        """One at a time waits at the port; each burst asks once."""
        cmd = self.mem.cmd
        with m.If(~cmd.valid | cmd.ready):
            m.d.sync += cmd.valid.eq(self.refill.asks | self.spill.asks)
            for write, burst in enumerate((self.refill, self.spill)):
                with m.If(burst.asks & ~self.refill.asks if write else burst.asks):
                    place = Cat(burst.block, burst.list) if self.list_bits else burst.block
                    offset = place << _log2(self.block * ENTRY_BYTES)
                    m.d.sync += [cmd.payload.addr.eq(self.base + offset), burst.asks.eq(0)]
                    m.d.sync += cmd.payload.write.eq(write)
        m.d.comb += cmd.payload.beats.eq(self.block // self.per_beat - 1)

    def _fetches(self, m):
        """Heads, from the fronts' starts; the list after the one that was last goes first."""
        side, n = self.read, self.lists
        fetched, target = Signal(n, name="fetched"), Signal.like(side.at, name="fetch_list")
        latest, open_ = Signal(n), Signal(n)
        chosen, later, own = Signal.like(target, name="fetch_next"), Signal(n), Signal(n)
        m.d.comb += open_.eq(self.some & ~self.valid & ~fetched)
        m.d.comb += later.eq(open_ & latest)
        for k in reversed(range(n)):  # those after the last one win
            with m.If(open_[k]):
                m.d.comb += [chosen.eq(k), own.eq(1 << k)]
        for k in reversed(range(n)):
            with m.If(later[k]):
                m.d.comb += [chosen.eq(k), own.eq(1 << k)]
        m.d.sync += fetched.eq(0)
        with m.If(side.fore):
            m.d.comb += side.at.eq(chosen)
            m.d.sync += latest.eq(~(own | (own - 1))[:n])
            with m.If(side.front != 0):
                m.d.comb += side.moves.eq(1)
                m.d.sync += fetched.eq(own)
            with m.Elif(~side.deep & (side.rear != 0)):
                m.d.comb += self.turns.eq(own)
            with m.Else():
                m.d.comb += self.hollow.eq(own)
        for k in range(n):
            with m.If(fetched[k]):
                m.d.sync += self.head[k].eq(self.ram_r.data)
        m.d.sync += self.valid.eq(self.valid & ~self.pop | fetched)
        m.d.comb += self.busy.eq(self.todo | self.some | self.valid | self.deep | fetched)
        self._slots(m, side, open_.any(), self.spill.wants)

    def _spills(self, m):
        """Blocks from the rear's start to memory."""
        side, burst, mem = self.read, self.spill, self.mem
        own = Array(1 << k for k in range(self.lists))[burst.list]
        left = Signal(range(self.block + 1))  # entries still to be read
        lane = Signal(range(max(2, self.per_beat)), name="spill_lane")
        came, filled = Signal(name="came"), Signal(name="filled")  # an entry; it fills its beat
        ends = Signal()  # the next one will
        done = left == 0
        lanes = [Signal(self.entry_bits, name=f"lane{k}") for k in range(self.per_beat - 1)]
        beat = mem.wdata.payload
        ring = side.flip ^ side.back
        m.d.comb += [
            ends.eq(lane == self.per_beat - 1),
            self.ram_r.addr.eq(self._move(m, side, self.starts, ring)),
            self.ram_r.en.eq(side.moves),
            beat.strb.eq(~0),
            mem.wdone.ready.eq(1),
        ]
        moved = mem.wdata.valid & mem.wdata.ready
        with m.If(~burst.active):
            m.d.comb += burst.wants.eq(self.long.bit_select(burst.list, 1))
            with m.If(~burst.wants):
                m.d.sync += burst.list.eq(_next(burst.list, self.lists))
        with m.Elif(~burst.asks & ~done):  # the command has gone
            room = (~mem.wdata.valid | mem.wdata.ready) & ~filled
            m.d.comb += burst.wants.eq(~ends | room)
        m.d.sync += [came.eq(0), filled.eq(0)]
        with m.If(side.back):
            m.d.comb += side.at.eq(burst.list)
            with m.If(burst.active):
                m.d.comb += side.moves.eq(1)
                m.d.sync += [left.eq(left - 1), lane.eq(Mux(ends, 0, lane + 1))]
                m.d.sync += [came.eq(1), filled.eq(ends)]
            with m.Elif(side.rear >= self.block):
                m.d.comb += [self.spilled.en.eq(1), self.sinks.eq(own)]
                m.d.sync += [burst.active.eq(1), burst.asks.eq(1), left.eq(self.block)]
                m.d.sync += burst.block.eq(self.spilled.values["r"])
            with m.Else():
                m.d.comb += self.short.eq(own)
                m.d.sync += burst.list.eq(_next(burst.list, self.lists))
        with m.If(moved):
            m.d.sync += mem.wdata.valid.eq(0)
        with m.If(came):
            m.d.sync += [
                a.eq(b) for a, b in zip(lanes, [*lanes[1:], self.ram_r.data], strict=False)
            ]
        with m.If(filled):
            words, blank = [*lanes, self.ram_r.data], Const(0, 32 - self.entry_bits)
            m.d.sync += [
                mem.wdata.valid.eq(1),
                beat.data.eq(Cat(Cat(word, blank) for word in words)),
                beat.last.eq(done),
            ]
        with m.If(burst.active & mem.wdone.valid):
            m.d.sync += burst.active.eq(0)
            m.d.sync += burst.list.eq(_next(burst.list, self.lists))
