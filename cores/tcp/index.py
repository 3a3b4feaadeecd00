"""The session index: from (remote address, remote port, local port) to a session number, with the
entries in external memory."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import StreamFifo
from ..memory import MemorySignature
from ..memory_arbiter import MemoryArbiter
from .index_cache import TupleCache
from .index_layout import HASH_ROUNDS, SPILLED, IndexLayout, place_layout
from .index_reader import IndexReader
from .index_writer import Change, IndexWriter
from .lookup import LookupSignature
from .number_stack import NumberStack
from .speck import ROUNDS, Speck

__all__ = ["SessionIndex", "hint_layout", "reap_layout"]

#: Removals that wait, at most.
REAPS = 8


def hint_layout():
    """What somebody will look up soon; ``syn``: and will want the hash."""
    return data.StructLayout({"tuple": 64, "syn": 1})


def reap_layout(session_bits):
    """A session that is over, and the tuple it was entered with."""
    return data.StructLayout({"session": session_bits, "tuple": 64})


class Step(enum.IntEnum, shape=4):
    """Where a slot's look-up, or the removal, has got to."""

    EMPTY = 0
    START = 1  # waits for the cipher
    HASH = 2  # the cipher works on it
    LOOK = 3  # to be looked for in the tuple cache
    WALK = 4  # is not there: its buckets are to be read
    READ = 5  # they are being read
    FILL = 6  # found in memory: to be put into the cache
    DONE = 7
    DRAIN = 8  # to be inserted, but was found: waits until no removal is left
    CHANGE = 9  # to be inserted or removed


class SessionIndex(wiring.Component):
    """Finds sessions by tuple, enters new ones, removes those that are over; keeps free numbers.

    =================  ===  ===================================================================
    ``go``             In   memory can be written; stays, and 1 if it is left alone
    ``lookup``         In   :class:`~trebuchet.cores.tcp.lookup.LookupSignature`. A tuple that was
                            found may be inserted, too, if ``reap`` has taken its session; ``done``
                            means that ``free_valid`` is right, too
    ``key``            In   128-bit secret; it stays as it is while anything is in the index
    ``none``           Out  no number is free. If this and ``lookup.free_valid`` are 0, one is on
                            its way
    ``hint``           In   stream of tuples (and ``syn``) that will be looked up soon
    ``coming``         Out  strobe: what was hinted is session ``coming_session``
    ``reap``           In   stream of sessions that are over, with their tuples
    ``in_use``         Out  numbers not free
    ``freed``          Out  strobe: a number has become free
    ``mem``            Out  memory port, for ``size`` bytes from ``base`` on
    =================  ===  ===================================================================

    Parameters: ``sessions``, a power of two from 2 to 131,072, of which ``numbers`` are used (None:
    all); ``width`` of the port, 32 or 64; ``base``, a multiple of 64; ``bucket_bits``, see
    :class:`~.index_layout.IndexLayout`; ``cache_sets``, half the entries of the tuple cache;
    ``ahead``, look-ups besides the dialogue's that can be under way, 1 to 3; ``stack_depth``, free
    numbers on chip.

    A hint is no more than that: it may be wrong, late or missing, may change or go away while it
    waits, and the look-ups that follow may have another order. Hint what waits behind the segment
    at work, at most ``ahead`` of them; a hint that was never asked for is overwritten.

    A removal takes effect some time after ``reap``: until then a look-up may still find the
    session, whose record says that it is over. What ``done`` has told stays as it is until
    ``finish``, though a removal takes effect meanwhile.

    Cycles, with a memory that answers after 40 and 64-bit buckets' beats back to back:

    =================================================  =======================================
    ``start`` to ``done``, in the cache                12; hinted 20 cycles before: 1
    not in the cache                                   75 (found: 78); hinted 75 before: 1
    ``hash_valid``                                     30; hinted 30 before: 1
    ``finish`` with ``insert`` to ``ready``            4; without: 1
    insertion, in the background                       its write, for which nothing waits but a
                                                       read of the same bucket
    ``reap`` to ``freed``                              61, of an entry not in the cache 124;
                                                       meanwhile a look-up takes 7 more at most
    =================================================  =======================================

    Reset: empty, when the buckets have been cleared: a burst of 64 bytes each, after ``go``.

    **Races**, and what closes them. A *change* (an insertion, a removal) happens in one cycle, to
    the tuple cache, the list of changes under way and all slots.

    * Read of a bucket whose change is on its way to memory: the walk waits until memory has
      reported the end of the write. Nobody else waits.
    * Change of a bucket that is being read, or was read for an answer not yet told (a hint's): the
      look-up begins anew from the cache, where an insertion is found.
    * The overflow list: any change of it counts for everybody.
    * Number freed and given out again while its old entry is in a bucket: it becomes free after
      the end of the write that removes the entry.
    * Cache says a session that is gone: its entry leaves with the change; what a walk has found
      goes into the cache only if the look-up need not begin anew.
    * Reaped and entered again while the old entry is there: the insertion waits for the removals
      that were taken before it.
    * Entered and reaped at once: removals do not begin while an insertion waits.
    * A place found free is taken by somebody else: only the dialogue inserts, one at a time.
    """

    def __init__(
        self,
        sessions=131072,
        width=64,
        base=0,
        *,
        numbers=None,
        bucket_bits=None,
        places=7,
        cache_sets=512,
        ahead=2,
        stack_depth=64,
    ):
        if width not in (32, 64):
            raise ValueError(f"Data path of the session index must be 32 or 64 bits, not {width!r}")
        if not isinstance(ahead, int) or not 1 <= ahead <= 3:
            raise ValueError(f"Look-ups ahead must be 1 to 3, not {ahead!r}")
        self.layout = IndexLayout(sessions, base, bucket_bits, places)
        self.width, self.cache_sets, self.ahead = width, cache_sets, ahead
        self.numbers, self.stack_depth = numbers, stack_depth
        self.numbers_base = base + -(-self.layout.size // 64) * 64
        self.size = self.numbers_base + sessions * width // 8 - base
        self.session_bits = s = self.layout.session_bits
        super().__init__(
            {
                "go": In(1, init=1),
                "lookup": In(LookupSignature(s)),
                "key": In(128),
                "none": Out(1),
                "hint": In(stream.Signature(hint_layout())),
                "coming": Out(1),
                "coming_session": Out(s),
                "reap": In(stream.Signature(reap_layout(s))),
                "in_use": Out(range(sessions + 1)),
                "freed": Out(1),
                "mem": Out(MemorySignature(width, 2)),
            }
        )

    # A look-up is in a *slot*, as is the removal at work (the last slot). What is shared by all
    # takes them one at a time: the cipher, the cache, and the reader at the start of a walk.
    # Each change of the index happens in one cycle, ACT of the cache unit, to the cache, the list
    # of changes under way and the slots that know better now: before it, nobody has seen it; after
    # it, everybody does.
    def elaborate(self, platform):
        m = Module()
        layout, s, n = self.layout, self.session_bits, self.ahead + 1
        self.removal = n
        m.submodules.speck = self.speck = Speck()
        m.submodules.cache = self.cache = TupleCache(s, self.cache_sets)
        m.submodules.reader = self.reader = IndexReader(layout, n + 1, self.width)
        m.submodules.writer = self.writer = IndexWriter(layout, self.width)
        m.d.comb += self.writer.go.eq(self.go)
        m.submodules.stack = self.stack = NumberStack(
            layout.sessions,
            self.numbers_base,
            self.width,
            numbers=self.numbers,
            depth=self.stack_depth,
        )
        m.submodules.memory = memory = MemoryArbiter(3, self.width, 0, prompt=range(3))
        m.submodules.reaped = self.reaped = StreamFifo(reap_layout(s), REAPS)
        for port, part in zip(memory.ports, (self.reader, self.writer, self.stack), strict=True):
            wiring.connect(m, part.mem, port)
        wiring.connect(m, memory.mem, wiring.flipped(self.mem))
        wiring.connect(m, wiring.flipped(self.reap), self.reaped.i)
        wiring.connect(m, self.writer.freed, self.stack.give)

        def registers(name, shape, count=n + 1):
            return [Signal(shape, name=f"{name}_{k}") for k in range(count)]

        self.step, self.code = registers("step", Step), registers("code", 64)
        self.number, self.where = registers("number", s), registers("where", place_layout())
        self.stale = registers("stale", 1)  # what is being read is no longer so
        self.revoked = registers("revoked", 1)  # a change makes it so in this cycle
        # Of look-ups only:
        self.has, self.inserting = registers("has", 1, n), registers("inserting", 1, n)
        self.hinted, self.hint_tuple = registers("hinted", 1, n), registers("hint_tuple", 64, n)
        self.syn_of, self.isn = registers("syn_of", 1, n), registers("isn", 32, n)
        self.isn_valid = registers("isn_valid", 1, n)
        self.current = Signal(range(n))  # the slot of the dialogue, or of the next one
        self.dialogue = Signal()
        self.spilled = Signal(s + 1)  # entries on the overflow list
        self.spill_index = Signal(s)  # where the removal has found its entry there
        self.drain = Signal(range(REAPS + 2))  # removals that go before an insertion
        self.change = Signal()  # a change happens
        self.up = Signal()  # after reset: everything is clear
        m.d.comb += self.up.eq(self.cache.ready & self.writer.ready)
        self._change_unit(m)
        self._walks(m)
        self._dialogue(m)
        self._hash(m)
        return m

    def _is(self, k, *steps):
        return Cat(self.step[k] == step for step in steps).any()

    def _hash(self, m):
        """The cipher, for the dialogue before hints, for these before removals."""
        speck, n, reap, look = self.speck, self.removal, self.reaped.o, self.lookup
        busy, whose = Signal(), Signal(range(n + 1))
        victim, hint = Signal(range(n)), self.hint
        open_slot = Array(
            (self.current != k) & self._is(k, Step.EMPTY, Step.DONE) for k in range(n)
        )[victim]
        # What is reaped may be what is being inserted; but what an insertion waits for goes first.
        waits = Cat(self.inserting).any() & (self.drain == 0)
        m.d.comb += [speck.key.eq(self.key), speck.block.eq(look.tuple)]
        current = Array(self.step)[self.current]
        with m.If(speck.rounds == HASH_ROUNDS):
            for k in range(n + 1):
                with m.If(busy & (whose == k)):
                    m.d.sync += [self.code[k].eq(speck.result), self.step[k].eq(Step.LOOK)]
                    m.d.sync += busy.eq(self.syn_of[k] if k != n else 0)
        for k in range(n):
            with m.If(busy & (speck.rounds == ROUNDS) & (whose == k)):
                m.d.sync += [self.isn[k].eq(speck.result[:32]), self.isn_valid[k].eq(1)]
                m.d.sync += busy.eq(0)
        with m.If(victim == self.current):
            m.d.sync += victim.eq(Mux(victim == n - 1, 0, victim + 1))
        with m.If(~busy & self.up):
            with m.If(current == Step.START):
                m.d.comb += speck.start.eq(1)
                m.d.sync += whose.eq(self.current)
                for k in range(n):
                    with m.If(self.current == k):
                        m.d.sync += [self.step[k].eq(Step.HASH), self.isn_valid[k].eq(0)]
            with m.Elif(hint.valid & open_slot & ~look.start):
                m.d.comb += [speck.start.eq(1), hint.ready.eq(1)]
                m.d.comb += speck.block.eq(hint.payload.tuple)
                m.d.sync += [whose.eq(victim), victim.eq(Mux(victim == n - 1, 0, victim + 1))]
                for k in range(n):
                    with m.If(victim == k):
                        m.d.sync += [self.step[k].eq(Step.HASH), self.isn_valid[k].eq(0)]
                        m.d.sync += [self.hinted[k].eq(1), self.syn_of[k].eq(hint.payload.syn)]
                        m.d.sync += self.hint_tuple[k].eq(hint.payload.tuple)
            with m.Elif(reap.valid & self._is(n, Step.EMPTY) & ~waits):
                m.d.comb += [speck.start.eq(1), reap.ready.eq(1)]
                m.d.comb += speck.block.eq(reap.payload.tuple)
                m.d.sync += [whose.eq(n), self.step[n].eq(Step.HASH)]
                m.d.sync += self.number[n].eq(reap.payload.session)
        with m.If(speck.start):
            m.d.sync += busy.eq(1)

    def _dialogue(self, m):
        """Towards who looks up."""
        n, current, take, look = self.removal, self.current, self.stack.take, self.lookup
        step, has = Array(self.step)[current], Array(self.has)[current]
        m.d.comb += [
            look.ready.eq(self.up & ~self.dialogue & (step == Step.EMPTY)),
            look.done.eq(self.dialogue & (step == Step.DONE) & (take.valid | self.stack.none)),
            look.found.eq(has),
            look.session.eq(Array(self.number)[current]),
            look.hash.eq(Array(self.isn)[current]),
            look.hash_valid.eq(self.dialogue & Array(self.isn_valid)[current]),
            look.free_valid.eq(take.valid),
            self.none.eq(self.stack.none),
            look.free_session.eq(take.payload),
            take.ready.eq(look.finish & look.insert),
            self.freed.eq(self.writer.freed.valid & self.writer.freed.ready),
        ]
        m.d.sync += self.in_use.eq(self.in_use + take.ready - self.freed)
        ours = [
            self.hinted[k] & (self.hint_tuple[k] == look.tuple) & (self.syn_of[k] | ~look.want_hash)
            for k in range(n)
        ]
        with m.If(look.start):
            m.d.sync += self.dialogue.eq(1)
            for k in range(n):
                with m.If(current == k):
                    m.d.sync += [self.step[k].eq(Step.START), self.syn_of[k].eq(look.want_hash)]
            with m.If(Cat(ours).any()):
                for k in range(n):
                    with m.If(current == k):
                        m.d.sync += self.step[k].eq(Step.EMPTY)
                for k in reversed(range(n)):
                    with m.If(ours[k]):
                        m.d.sync += current.eq(k)
                for k in range(n):
                    first = ours[k] & ~Cat(ours[:k]).any() if k else ours[k]
                    with m.If(first):
                        m.d.sync += self.hinted[k].eq(0)
        with m.If(look.finish):
            m.d.sync += self.dialogue.eq(0)
            for k in range(n):
                with m.If(current == k):
                    m.d.sync += self.step[k].eq(Step.EMPTY)
                    with m.If(look.insert):
                        m.d.sync += [self.number[k].eq(take.payload), self.inserting[k].eq(1)]
                        m.d.sync += self.step[k].eq(Mux(has, Step.DRAIN, Step.CHANGE))
        working = ~self._is(n, Step.EMPTY)
        worked = Signal()
        m.d.sync += worked.eq(working)
        with m.If(take.ready):
            m.d.sync += self.drain.eq(Mux(has, self.reaped.level + working, 0))
        with m.Elif(worked & ~working & (self.drain != 0)):
            m.d.sync += self.drain.eq(self.drain - 1)
        for k in range(n):
            with m.If(self._is(k, Step.DRAIN) & (self.drain == 0)):
                m.d.sync += self.step[k].eq(Step.WALK)

    def _change_unit(self, m):
        """Everything that is done with the tuple cache, three cycles each: PICK, READ, ACT."""
        n, cache, writer = self.removal, self.cache, self.writer
        at, task = Signal(range(n + 1)), Signal(Step)
        number, where = Array(self.number)[at], Signal(place_layout())
        m.d.comb += [
            self.coming_session.eq(Mux(task == Step.FILL, number, cache.its_number)),
            where.eq(Array(w.as_value() for w in self.where)[at]),
            cache.code.eq(Array(self.code)[at]),
            cache.number.eq(number),
            cache.where.eq(where),
        ]
        with m.FSM(name="unit") as self.unit:
            with m.State("PICK"):  # the last that is named is preferred
                for step in (Step.LOOK, Step.FILL, Step.CHANGE):
                    able = writer.change.ready if step == Step.CHANGE else 1
                    for k in reversed(range(n + 1)):
                        # What a removal frees must find room when memory reports its end, or that
                        # report would wait for the stack, and the stack for its own behind it.
                        room = self.stack.room if step == Step.CHANGE and k == n else 1
                        with m.If(self._is(k, step) & able & room):
                            m.d.sync += [at.eq(k), task.eq(step)]
                            m.next = "READ"
            with m.State("READ"):
                m.next = "ACT"
            with m.State("ACT"):
                m.next = "PICK"
                found = (task == Step.FILL) | ((task == Step.LOOK) & cache.hit)
                asked = self.dialogue & (at == self.current)
                m.d.comb += self.coming.eq(found & (at != n) & ~asked)
                with m.Switch(task):
                    with m.Case(Step.LOOK):
                        self._look(m, at, number)
                    with m.Case(Step.FILL):
                        m.d.comb += cache.put.eq(1)
                        for k in range(n):
                            with m.If(at == k):
                                m.d.sync += self.step[k].eq(Step.DONE)
                    with m.Case(Step.CHANGE):
                        m.d.comb += self.change.eq(1)
        self._write(m, at, number, where)

    def _look(self, m, at, number):
        """In ACT: what the cache says of the slot's tuple."""
        n, cache = self.removal, self.cache
        for k in range(n):
            with m.If(at == k):
                m.d.sync += self.step[k].eq(Mux(cache.hit, Step.DONE, Step.WALK))
                with m.If(cache.hit):
                    m.d.sync += [self.has[k].eq(1), self.number[k].eq(cache.its_number)]
        with m.If(at == n):
            mine = cache.hit & (cache.its_number == number)
            known = mine & (cache.its_where.index != SPILLED)
            m.d.sync += self.step[n].eq(Mux(known, Step.CHANGE, Step.WALK))
            m.d.sync += self.where[n].eq(cache.its_where)

    def _write(self, m, at, number, where):
        """In ACT: a change, to the cache, to memory, and to those who have read what it changes."""
        layout, n, cache, change = self.layout, self.removal, self.cache, self.writer.change
        removes, spills = at == n, where.index == SPILLED
        out, moved = change.payload, Mux(at == n, self.reader.last_code, cache.code)
        with m.If(self.change):
            m.d.comb += [cache.put.eq(~removes), cache.drop.eq(removes), change.valid.eq(1)]
            with m.If(spills):
                m.d.sync += self.spilled.eq(Mux(removes, self.spilled - 1, self.spilled + 1))
            for k in range(n + 1):
                with m.If(at == k):
                    m.d.sync += self.step[k].eq(Step.EMPTY)
                    if k != n:
                        m.d.sync += self.inserting[k].eq(0)
        m.d.comb += [
            out.kind.eq(Mux(spills, Change.SPILL, Mux(removes, Change.REMOVE, Change.INSERT))),
            out.bucket.eq(layout.bucket(cache.code, where.side)),
            out.where.eq(where),
            out.index.eq(Mux(removes, self.spill_index, self.spilled)),
            out.code.eq(moved),
            out.number.eq(Mux(removes, self.reader.last_number, number)),
            out.frees.eq(removes),
            out.freed.eq(number),
        ]
        for k in range(n + 1):
            left, right = layout.left(self.code[k]), layout.right(self.code[k])
            same = out.bucket == Mux(where.side, Cat(right, 1), Cat(left, 0))
            m.d.comb += self.revoked[k].eq(self.change & (at != k) & (spills | same))
            again = self._is(k, Step.FILL)
            if k == n:
                again = again | self._is(k, Step.CHANGE)
            else:
                again = again | self._is(k, Step.DONE) & ~(self.dialogue & (self.current == k))
            with m.If(self.revoked[k]):
                m.d.sync += self.stale[k].eq(1)
                with m.If(again):
                    m.d.sync += self.step[k].eq(Step.LOOK)

    def _walks(self, m):
        """Begin walks, one after the other, and take what they find."""
        n, reader, writer, layout = self.removal, self.reader, self.writer, self.layout
        candidate = Signal(range(n + 1))
        code = Array(self.code)[candidate]
        m.d.comb += [
            [reader.codes[k].eq(code) for k, code in enumerate(self.code)],
            reader.wanted.eq(self.number[n]),
            reader.spilled.eq(self.spilled),
            reader.who.eq(candidate),
            writer.left.eq(layout.left(code)),
            writer.right.eq(layout.right(code)),
        ]
        with m.FSM(name="walks"):
            with m.State("PICK"):
                for k in reversed(range(n + 1)):
                    with m.If(self._is(k, Step.WALK)):
                        m.d.sync += candidate.eq(k)
                        m.next = "CHECK"
            with m.State("CHECK"):
                m.next = "PICK"
                with m.If(reader.ready & ~writer.busy & ~self.change):
                    m.d.comb += reader.ask.eq(1)
                    for k in range(n + 1):
                        with m.If(candidate == k):
                            m.d.sync += [self.step[k].eq(Step.READ), self.stale[k].eq(0)]
        for k in range(n + 1):
            with m.If(reader.finished & (reader.whose == k)):
                self._finished(m, k)

    def _finished(self, m, k):
        """The walk of slot ``k`` is over."""
        reader, place = self.reader, Signal(place_layout(), name=f"place_{k}")
        m.d.comb += [place.eq(reader.place)]
        with m.If(~reader.room):
            m.d.comb += place.index.eq(SPILLED)
        old = self.stale[k] | self.revoked[k]
        if k == self.removal:
            m.d.sync += [self.where[k].eq(reader.where), self.spill_index.eq(reader.index)]
            m.d.sync += self.step[k].eq(Mux(reader.found, Step.CHANGE, Step.EMPTY))
            with m.If(old):
                m.d.sync += self.step[k].eq(Step.LOOK)
            return
        m.d.sync += [self.where[k].eq(place), self.step[k].eq(Step.DONE)]
        with m.If(self.inserting[k]):
            m.d.sync += self.step[k].eq(Mux(old, Step.WALK, Step.CHANGE))
        with m.Else():
            m.d.sync += self.has[k].eq(reader.found)
            with m.If(reader.found):
                m.d.sync += [self.where[k].eq(reader.where), self.number[k].eq(reader.number)]
                m.d.sync += self.step[k].eq(Step.FILL)
            with m.If(old):
                m.d.sync += self.step[k].eq(Step.LOOK)
