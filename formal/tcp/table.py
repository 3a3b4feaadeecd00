"""Proof of the session table in ``cores/tcp/table.py``, with two sessions.

Against an abstract map, for one arbitrary tuple: a lookup finds it exactly if it was entered and
its session was not freed since, and under the number that it was entered with, whatever other
sessions came and went, however they share buckets. Each number is either in use or free, and never
handed out while it is in use; ``in_use`` counts them; a number becomes free once for each ``reap``.
A lookup and a removal last 9 cycles and 3 for each session there can be at most, and a removal
begins as soon as nothing is looked up.

The invariants say that the chain of a bucket holds exactly the sessions entered with it, the newest
first, and where the walk along it is. Of the cipher it is only assumed that it gives one value for
one tuple (``speck`` proves what it computes), so this holds for every way of sharing buckets.

Not proved: behaviour under a reset while running; other sizes.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.tcp.config import TcpConfig

from ..kit.proof import Mutant, Proof
from ..kit.standins import buffered_fifo_words, elaborated, only_part, state_is
from ..stream import free, new_harness, within

__all__ = ["PROOFS"]

CONFIG = TcpConfig(sessions=2)
ROUNDS, BUCKET_ROUNDS = 27, 5
WALK = ("READ", "COMPARE", "NEXT", "DONE")


class TableProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        self.n, self.s = dut.config.sessions, dut.config.session_bits
        self.inner = elaborated(dut)
        self._requests(m)
        self._cipher(m)
        self._map(m)
        self._contract(m)
        self._contents(m)
        self._stock(m)
        self._chains(m)
        self._walk(m)
        self._progress(m)
        return m

    def _at(self, *states):
        return state_is(self.dut.fsm, *states)

    def _requests(self, m):
        """Whoever looks up keeps to the dialogue; only what is in use is reaped, and once."""
        dut = self.dut
        free(
            m,
            dut.lookup.start,
            dut.lookup.tuple,
            dut.lookup.finish,
            dut.lookup.insert,
            dut.reap,
            dut.reap_session,
        )
        asking, past = Signal(), Signal(64)
        with m.If(dut.lookup.start):
            m.d.sync += asking.eq(1)
        with m.Elif(dut.lookup.finish):
            m.d.sync += asking.eq(0)
        m.d.sync += past.eq(dut.lookup.tuple)
        m.d.comb += [
            dut.key.eq(AnyConst(128)),
            Assume(~dut.lookup.start | dut.lookup.ready),
            Assume(~dut.lookup.finish | dut.lookup.done),
            Assume(
                ~dut.lookup.insert | (dut.lookup.finish & ~dut.lookup.found & dut.lookup.free_valid)
            ),
            Assume(~asking | (dut.lookup.tuple == past)),
        ]
        unlink, _, _ = dut.removes
        looking = self._at("HASH") | (self._at("HEAD", "FIRST", *WALK) & ~unlink)
        m.d.comb += Assert(asking == looking)  # invariant

    def _cipher(self, m):
        """Any function of the tuple, of which the harness knows the value for the chosen one."""
        speck = self.inner.submodules.speck
        only_part(speck)
        dut, self.tuple, value = self.dut, Signal(64, name="chosen_tuple"), Signal(64)
        m.d.comb += [
            self.tuple.eq(AnyConst(64)),
            value.eq(AnyConst(64)),
            speck.result.eq(AnySeq(64)),
        ]
        rounds = Signal(5, init=ROUNDS)
        with m.If(speck.start):
            m.d.sync += rounds.eq(0)
        with m.Elif(rounds != ROUNDS):
            m.d.sync += rounds.eq(rounds + 1)
        self.bucket = (value[:32] ^ value[32:])[: self.s + 1]
        with m.If((rounds == BUCKET_ROUNDS) & (dut.lookup.tuple == self.tuple)):
            m.d.comb += Assume(speck.result == value)
        m.d.comb += [
            speck.rounds.eq(rounds),
            Assert(speck.start == dut.lookup.start),
            Assert(~speck.start | ((speck.block == dut.lookup.tuple) & (speck.key == dut.key))),
            Assert(dut.lookup.hash_valid == (rounds == ROUNDS)),
            Assert(dut.lookup.hash == speck.result[:32]),
            Assert(~self._at("HASH") | (rounds <= BUCKET_ROUNDS)),  # invariant
            Assert(rounds <= ROUNDS),
        ]

    def _map(self, m):
        """What the table must hold: sessions in use, in the order in which they came."""
        dut, n = self.dut, self.n
        self.member, self.doomed = Signal(n, name="member"), Signal(n, name="doomed")
        self.rank = [Signal(range(n), name=f"rank{s}") for s in range(n)]
        self.has, self.number = Signal(name="has"), Signal(self.s, name="number")
        self.count = Signal(range(n + 1), name="members")
        _, victim, _ = dut.removes
        m.d.comb += self.count.eq(sum(self.member))
        m.d.comb += Assume(~dut.reap | (self.member & ~self.doomed).bit_select(dut.reap_session, 1))
        with m.If(dut.reap):
            m.d.sync += self.doomed.bit_select(dut.reap_session, 1).eq(1)
        with m.If(dut.lookup.insert):
            m.d.sync += self.member.bit_select(dut.lookup.free_session, 1).eq(1)
            m.d.sync += Array(self.rank)[dut.lookup.free_session].eq(self.count)
            with m.If(dut.lookup.tuple == self.tuple):
                m.d.sync += [self.has.eq(1), self.number.eq(dut.lookup.free_session)]
        with m.If(dut.freed):
            m.d.sync += self.member.bit_select(victim, 1).eq(0)
            m.d.sync += self.doomed.bit_select(victim, 1).eq(0)
            for rank in self.rank:
                with m.If(rank > Array(self.rank)[victim]):
                    m.d.sync += rank.eq(rank - 1)
            with m.If(victim == self.number):
                m.d.sync += self.has.eq(0)

    def _contract(self, m):
        dut = self.dut
        _, victim, _ = dut.removes
        with m.If(dut.lookup.done & (dut.lookup.tuple == self.tuple)):
            m.d.comb += Assert(dut.lookup.found == self.has)
            with m.If(dut.lookup.found):
                m.d.comb += Assert(dut.lookup.session == self.number)
        with m.If(dut.lookup.done & dut.lookup.found):
            m.d.comb += Assert(self.member.bit_select(dut.lookup.session, 1))
        with m.If(dut.lookup.free_valid):
            m.d.comb += Assert(~self.member.bit_select(dut.lookup.free_session, 1))
        with m.If(dut.freed):
            m.d.comb += Assert(self.doomed.bit_select(victim, 1))
        m.d.comb += Assert(dut.in_use == self.count)
        gone = Signal()
        with m.If(dut.freed & self.has & (victim != self.number) & (self.count > 1)):
            m.d.sync += gone.eq(1)
        m.d.comb += [
            Cover(gone & dut.lookup.done & dut.lookup.found & (dut.lookup.tuple == self.tuple)),
            Cover(dut.freed & (victim == self.number) & self.has),
        ]

    def _contents(self, m):
        """Invariant views of the three memories."""
        memories = self.inner.submodules

        def words(memory):
            ports = [memory.read_port(domain="comb") for _ in range(memory.depth)]
            m.d.comb += [port.addr.eq(k) for k, port in enumerate(ports)]
            return [port.data for port in ports]

        self.read = {
            name: memories[name].read_ports[0].data for name in ("heads", "nexts", "entries")
        }
        self.heads, self.nexts = words(memories.heads), words(memories.nexts)
        self.entries = words(memories.entries)
        self.buckets = [entry.bucket for entry in self.entries]

    def _stock(self, m):
        """Invariant: each number is in use or in the stock; each doomed one waits, or is next."""
        dut, n = self.dut, self.n
        bucket = dut.walk[0]
        unlink, victim, _ = dut.removes
        stock, reaped = self.inner.submodules.free, self.inner.submodules.reaped
        free_words, reaped_words = buffered_fifo_words(m, stock), buffered_fifo_words(m, reaped)
        busy = self._at("VICTIM", "BUCKET") | (self._at("HEAD", "FIRST", *WALK) & unlink)
        clearing = self._at("CLEAR")
        for s in range(n):
            in_stock = sum(there & (word == s) for there, word in free_words)
            waiting = sum(there & (word == s) for there, word in reaped_words)
            ready = Mux(clearing, bucket > 2 * s, ~self.member[s])
            m.d.comb += [
                Assert(in_stock == ready),
                Assert(waiting + (busy & (victim == s)) == self.doomed[s]),
                Assert(self.member[s] | ~self.doomed[s]),
            ]
        level = Mux(clearing, (bucket + 1) >> 1, n - self.count)
        m.d.comb += [
            Assert(stock.level == level),
            Assert(reaped.level + busy == sum(self.doomed)),
            Assert(~clearing | ((self.member == 0) & ~self.has)),
            Assert(~self._at("VICTIM", "BUCKET") | unlink),
            Assert(~self._at("HASH") | ~unlink),
        ]
        # The stock's FIFO takes a cycle to show what was put into it when it was empty.
        pushed = Signal()
        m.d.sync += pushed.eq(dut.reap)
        m.d.comb += [
            Assert(self._at("IDLE") | (clearing & bucket[0]) | stock.r_rdy | (stock.level == 0)),
            Assert(pushed | reaped.r_rdy | (reaped.level == 0)),
        ]
        if n == 2:  # so does the other one, which then has no room for two in a row
            m.d.comb += Assume(~pushed | ~dut.reap)
        for fifo in (stock, reaped):
            m.d.comb += Assert(fifo.r_rdy | (fifo.level <= 1))
            m.d.comb += Assert(~fifo.w_en | fifo.w_rdy)
            m.d.comb += Assert(~fifo.r_en | fifo.r_rdy)

    def _chains(self, m):
        """Invariant: a bucket's chain holds its sessions, all of them, the newest first."""
        n, member, rank = self.n, self.member, self.rank

        def follows(link, bucket, than):
            """``link`` goes to the newest session of ``bucket`` that is older than ``than``."""
            to, claims = link.session, []
            older = [member[t] & (self.buckets[t] == bucket) & than(t) for t in range(n)]
            claims.append(~link.valid | Cat(older).bit_select(to, 1))
            for t in range(n):
                claims.append(~older[t] | (link.valid & (rank[t] <= Array(rank)[to])))
            return Cat(claims).all()

        self.follows = follows
        with m.If(self._at("CLEAR")):
            m.d.comb += [Assert(~head.valid) for head in self.heads]
        with m.Else():
            for b, head in enumerate(self.heads):
                m.d.comb += Assert(follows(head, b, lambda t: 1))
            for s, link in enumerate(self.nexts):
                after = follows(link, self.buckets[s], lambda t, s=s: rank[t] < rank[s])
                m.d.comb += Assert(~member[s] | after)
        for s in range(n):
            m.d.comb += Assert(~member[s] | (rank[s] < self.count))
            for t in range(s):
                m.d.comb += Assert(~member[s] | ~member[t] | (rank[s] != rank[t]))
            ours = self.has & (self.number == s)
            entry = self.entries[s]
            m.d.comb += Assert(~member[s] | ((entry.tuple == self.tuple) == ours))
            m.d.comb += Assert(~ours | (member[s] & (entry.bucket == self.bucket)))

    def _walk(self, m):
        """Invariant: where the walk along a chain is, and what was read."""
        dut, member, rank = self.dut, self.member, Array(self.rank)
        bucket, head, at, step, same = dut.walk
        unlink, victim, previous = dut.removes
        buckets, entries = Array(self.buckets), Array(self.entries)
        raw_nexts = Array(Value.cast(link) for link in self.nexts)
        raw_heads = Array(Value.cast(link) for link in self.heads)
        here, walking = self._at("FIRST", *WALK), self._at(*WALK)
        read = self.read
        with m.If(self._at("VICTIM", "BUCKET")):
            m.d.comb += Assert(at.session == victim)
        with m.If(self._at("BUCKET")):
            m.d.comb += Assert(
                Value.cast(read["entries"]) == Array(Value.cast(e) for e in self.entries)[victim]
            )
        with m.If(self._at("HEAD") | here):
            with m.If(unlink):
                m.d.comb += Assert(bucket == buckets[victim])
            with m.Elif(dut.lookup.tuple == self.tuple):
                m.d.comb += Assert(bucket == self.bucket)
        with m.If(self._at("FIRST")):
            m.d.comb += Assert(Value.cast(read["heads"]) == raw_heads[bucket])
        with m.If(walking):
            m.d.comb += Assert(Value.cast(head) == raw_heads[bucket])
            mine = member.bit_select(at.session, 1) & (buckets[at.session] == bucket)
            m.d.comb += Assert(~at.valid | mine)
            with m.If(unlink):
                m.d.comb += Assert(at.valid & (rank[victim] <= rank[at.session]))
                first = (previous == victim) & (raw_heads[bucket] == Value.cast(at))
                later = (previous != victim) & (raw_nexts[previous] == Value.cast(at))
                before = member.bit_select(previous, 1) & (buckets[previous] == bucket)
                m.d.comb += Assert(first | (later & before))
            with m.Elif((dut.lookup.tuple == self.tuple) & self.has):
                m.d.comb += Assert(at.valid & (rank[self.number] <= rank[at.session]))
        with m.If(self._at("COMPARE")):
            m.d.comb += [
                Assert(Value.cast(read["nexts"]) == raw_nexts[at.session]),
                Assert(
                    Value.cast(read["entries"])
                    == Array(Value.cast(e) for e in self.entries)[at.session]
                ),
            ]
        right = Mux(unlink, at.session == victim, entries[at.session].tuple == dut.lookup.tuple)
        with m.If(self._at("NEXT")):
            m.d.comb += [Assert(Value.cast(step) == raw_nexts[at.session]), Assert(same == right)]
        with m.If(self._at("COMPARE", "NEXT")):
            m.d.comb += Assert(at.valid)
        with m.If(self._at("DONE")):
            m.d.comb += Assert(~at.valid | right)
            with m.If(at.valid):
                m.d.comb += Assert(Value.cast(step) == raw_nexts[at.session])

    def _progress(self, m):
        """A lookup and a removal take no longer than the longest chain; removals are begun."""
        dut, speck, n = self.dut, self.inner.submodules.speck, self.n
        at = dut.walk[2]
        waiting = Signal()  # a removal was possible and nothing was looked up
        m.d.sync += waiting.eq(
            dut.lookup.ready & ~dut.lookup.start & self.inner.submodules.reaped.r_rdy
        )
        m.d.comb += Assert(~waiting | self._at("VICTIM"))
        longest = 9 + 3 * n
        rests = dut.lookup.ready | dut.lookup.done | dut.freed | self._at("CLEAR")
        waited = within(m, rests, longest, "table")
        # Invariant: how long it lasts from each state at most.
        older = Signal(range(3 * n + 2))
        m.d.comb += older.eq(Mux(at.valid, 3 * (Array(self.rank)[at.session] + 1), 0))
        left = Signal(range(2 * longest))
        with m.If(self._at("HASH")):
            m.d.comb += left.eq(3 * n + 9 - speck.rounds)
        with m.If(self._at("VICTIM")):
            m.d.comb += left.eq(3 * n + 5)
        with m.If(self._at("BUCKET")):
            m.d.comb += left.eq(3 * n + 4)
        with m.If(self._at("HEAD")):
            m.d.comb += left.eq(3 * n + 3)
        with m.If(self._at("FIRST")):
            m.d.comb += left.eq(3 * n + 2)
        with m.If(self._at("READ")):
            m.d.comb += left.eq(older + 1)
        with m.If(self._at("COMPARE")):
            m.d.comb += left.eq(older)
        with m.If(self._at("NEXT")):
            m.d.comb += left.eq(older - 1)
        m.d.comb += Assert(rests | (waited + left <= longest))
        begins = ("HASH", "VICTIM", "BUCKET", "HEAD", "FIRST")
        m.d.comb += Assert(self._at("CLEAR", "IDLE", *begins, *WALK))


PROOFS = (
    Proof(
        name="tcp_table",
        core="cores.tcp.table.SessionTable(2 sessions)",
        says="agrees with a map from tuples to numbers; each number is in use or free, never both",
        module="trebuchet.cores.tcp.table",
        build=lambda cores: TableProof(cores.SessionTable(CONFIG)),
        depth=1,
        cover_depth=58,
        mutants=(
            Mutant("keeps_the_head", "head_w.en.eq(first)", "head_w.en.eq(0)", 34),
            Mutant(
                "keeps_the_number",
                "free.r_en.eq(1), entry_w.en.eq(1)",
                "free.r_en.eq(0), entry_w.en.eq(1)",
                26,
            ),
            Mutant(
                "wrong_bucket",
                "entry_w.data.bucket.eq(bucket)",
                "entry_w.data.bucket.eq(bucket + 1)",
                26,
            ),
            Mutant("counts_up_only", "self.in_use + taken - self.freed", "self.in_use + taken", 34),
        ),
        assumes="the dialogue's rules; what is in use is reaped, once, not two in a row",
        not_proved="other sizes",
    ),
)
