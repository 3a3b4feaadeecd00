"""Proof of the session index in ``cores/tcp/index.py``: its races, for one arbitrary tuple.

Against an abstract map: whatever is looked up, hinted, entered and reaped, in any order and with
any delays, a look-up of the tuple finds it if it was entered and not reaped, under the number that
it was entered with. If it was not, it is found only if a removal was still to come when the
dialogue began, or it was reaped during it. In memory the tuple is never entered twice; each
removal finds what it is to remove, and removes that. A walk never begins in a bucket of which a
change is under way.

The parts are hollow: cipher, walks, writer, stack and arbiter do what their data sheets say and
nothing more. So the cipher gives any other code for any other tuple, a walk takes any time, and if
the tuple's entry is changed while it is read, the walk finds anything at all. The tuple cache is
the real one, with two sets. There are eight tuples and as many codes.

Not proved: the parts (tests); the overflow list's contents; that a look-up ends; other sizes.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Const, Cover, Elaboratable, Signal

from ..kit.parts import Opened, moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

HOLLOWED = ("Speck", "IndexReader", "IndexWriter", "NumberStack", "MemoryArbiter")
#: Bits of tuples that are looked up; they are compared with each other, and no more.
TUPLES = 3


def _code(bits):
    """A code of which three bits are not 0: those that choose the buckets and the set."""
    return Cat(bits[:2], Const(0, 30), bits[2], Const(0, 31))


class IndexProof(Elaboratable):
    def __init__(self, module):
        self.module = module

    def elaborate(self, platform):
        m = new_harness()
        self.dut = dut = self.module.SessionIndex(4, bucket_bits=1, cache_sets=2, ahead=1)
        opened = Opened(
            self.module, dut, "formal", hollowed=HOLLOWED, HASH_ROUNDS=1, ROUNDS=2, REAPS=2
        )
        m.submodules.dut = opened.fragment
        self.tuple, self.code = Signal(TUPLES, name="chosen"), Signal(64, name="its_code")
        m.d.comb += [self.tuple.eq(AnyConst(TUPLES)), self.code.eq(_code(AnyConst(3)))]
        self._requests(m)
        self._cipher(m)
        self._memory(m)
        self._walks(m)
        self._contract(m)
        return m

    def _requests(self, m):
        """The dialogue's rules, those of streams, and what may be entered and reaped."""
        dut = self.dut
        free(
            m,
            dut.lookup.start,
            dut.lookup.want_hash,
            dut.lookup.finish,
            dut.lookup.insert,
            dut.hint.valid,
            dut.reap.valid,
        )
        free(m, dut.hint.payload.syn, dut.reap.payload.session)
        for port in (dut.lookup.tuple, dut.hint.payload.tuple, dut.reap.payload.tuple):
            m.d.comb += port.eq(AnySeq(TUPLES))
        stream_rules(m, dut.reap, Assume, "reap")
        asking, past = Signal(name="asking"), Signal(TUPLES, name="past")
        with m.If(dut.lookup.start):
            m.d.sync += asking.eq(1)
        with m.Elif(dut.lookup.finish):
            m.d.sync += asking.eq(0)
        m.d.sync += past.eq(dut.lookup.tuple)
        self.ours = ours = Signal(name="ours")
        self.has, self.number = Signal(name="has"), Signal(2, name="number")
        self.reaps = Signal(name="reaps")
        reap = dut.reap.payload
        m.d.comb += [
            dut.key.eq(AnyConst(128)),
            Assume(~dut.lookup.start | dut.lookup.ready),
            Assume(~dut.lookup.finish | dut.lookup.done),
            Assume(~dut.lookup.insert | (dut.lookup.finish & dut.lookup.free_valid)),
            Assume(~asking | (dut.lookup.tuple == past)),
            ours.eq(dut.lookup.tuple == self.tuple),
            # Only what is not there is entered, and what is there reaped; others keep off.
            Assume(~(dut.lookup.insert & ours) | ~self.has),
            self.reaps.eq(moves(dut.reap) & (reap.tuple == self.tuple)),
        ]
        with m.If(dut.reap.valid):
            mine = self.has & (reap.session == self.number)
            m.d.comb += Assume((reap.tuple == self.tuple) == mine)
        with m.If(dut.lookup.insert & ours):
            m.d.sync += [self.has.eq(1), self.number.eq(dut.lookup.free_session)]
        with m.If(self.reaps):
            m.d.sync += self.has.eq(0)
        # To begin with, it may have been in memory for long, and in the cache no more.
        self.first = Signal(init=1, name="first")
        self.old_there, self.old = Signal(name="old_there"), Signal(2, name="old")
        m.d.comb += [self.old_there.eq(AnyConst(1)), self.old.eq(AnyConst(2))]
        m.d.sync += self.first.eq(0)
        with m.If(self.first):
            m.d.sync += [self.has.eq(self.old_there), self.number.eq(self.old)]

    def _cipher(self, m):
        """One code for one tuple, and no other for it."""
        speck = self.dut.speck
        rounds, block = Signal(5, init=2, name="rounds"), Signal(TUPLES, name="block")
        with m.If(speck.start):
            m.d.sync += [rounds.eq(0), block.eq(speck.block)]
        with m.Elif(rounds != 2):
            m.d.sync += rounds.eq(rounds + 1)
        m.d.comb += Assume(speck.rounds == rounds)
        m.d.comb += Assume(speck.result == _code(Cat(speck.result[:2], speck.result[32])))
        with m.If(rounds == 1):
            m.d.comb += Assume((speck.result == self.code) == (block == self.tuple))

    def _memory(self, m):
        """What memory holds of the tuple once all changes are done, and those under way."""
        dut = self.dut
        writer, change = dut.writer, dut.writer.change
        removed = dut.code[dut.removal]
        self.there, self.its = Signal(name="there"), Signal(2, name="its")
        self.where = Signal(4, name="its_where")
        self.flying = flying = Signal(3, name="flying")  # changes of the tuple under way
        ended, enters, leaves = Signal(), Signal(name="enters"), Signal(name="leaves")
        out = change.payload
        m.d.comb += [
            ended.eq(AnySeq(1)),
            Assume(~ended | (flying != 0)),
            Assume(writer.ready),
            Assume(~change.ready | (flying != 7)),
            enters.eq(moves(change) & ~out.frees & (out.code == self.code)),
            leaves.eq(moves(change) & out.frees & (removed == self.code)),
            Assert(~change.valid | change.ready),
        ]
        ready = Signal(name="was_ready")  # it stays until something was taken
        m.d.sync += ready.eq(change.ready & ~change.valid)
        m.d.comb += Assume(~ready | change.ready)
        self.enters, self.leaves = enters, leaves
        m.d.sync += flying.eq(flying + (enters | leaves) - ended)
        with m.If(enters):
            m.d.comb += Assert(~self.there)
            m.d.sync += [self.there.eq(1), self.its.eq(out.number)]
            m.d.sync += self.where.eq(out.where.as_value())
        with m.If(leaves):
            m.d.comb += Assert(self.there & (self.its == out.freed))
            m.d.comb += Assert(out.where.as_value() == self.where)
            m.d.sync += self.there.eq(0)
        with m.If(self.first):
            m.d.sync += [self.there.eq(self.old_there), self.its.eq(self.old)]
            m.d.sync += self.where.eq(AnyConst(4))
        # The writer's promise, and that of the stack: no number is free while it is used.
        with m.If((writer.left == self.code[:1]) | (writer.right == self.code[1:2])):
            m.d.comb += Assume((flying == 0) | writer.busy)
        used = self.there & (dut.lookup.free_session == self.its)
        used = used | (self.has & (dut.lookup.free_session == self.number))
        used = used | ((flying != 0) & (dut.lookup.free_session == self.its))
        m.d.comb += Assume(~dut.lookup.free_valid | ~used)
        waits, past = Signal(name="number_waits"), Signal(2, name="number_past")
        m.d.sync += [
            waits.eq(dut.lookup.free_valid & ~dut.lookup.insert),
            past.eq(dut.lookup.free_session),
        ]
        m.d.comb += Assume(~waits | (dut.lookup.free_valid & (dut.lookup.free_session == past)))

    def _walks(self, m):
        """A walk for the tuple finds what is there, unless that has changed meanwhile."""
        dut, reader = self.dut, self.dut.reader
        last = dut.removal
        reading, dirty = Signal(last + 1, name="reading"), Signal(last + 1, name="dirty")
        with m.If(reader.ask):
            m.d.comb += Assert(~reading.bit_select(reader.who, 1))
            m.d.sync += reading.bit_select(reader.who, 1).eq(1)
            m.d.sync += dirty.bit_select(reader.who, 1).eq(0)
            with m.If(Array(dut.code)[reader.who] == self.code):
                m.d.comb += Assert((self.flying == 0) & ~self.enters & ~self.leaves)
        with m.If(self.enters | self.leaves):
            m.d.sync += dirty.eq(~0)
        with m.If(reader.finished):
            m.d.comb += Assume(reading.bit_select(reader.whose, 1))
            m.d.sync += reading.bit_select(reader.whose, 1).eq(0)
            clean = ~dirty.bit_select(reader.whose, 1)
            mine = Array(dut.code)[reader.whose] == self.code
            wanted = (reader.whose != last) | (reader.wanted == self.its)
            with m.If(clean & mine):
                m.d.comb += Assume(reader.found == (self.there & wanted))
                m.d.comb += Assume(~reader.found | (reader.number == self.its))
                m.d.comb += Assume(~reader.found | (reader.where.as_value() == self.where))
                # What is to be removed is there, unless the walk is to begin anew.
                again = dut.stale[last] | dut.revoked[last]
                with m.If((reader.whose == last) & ~again):
                    m.d.comb += Assert(reader.found)
        m.d.comb += Assert(~reader.ask | reader.ready)

    def _contract(self, m):
        dut = self.dut
        waiting = Signal(3, name="waiting")  # removals of the tuple that are to come
        late = Signal(name="late")  # one was when the dialogue began, or came during it
        m.d.sync += waiting.eq(waiting + self.reaps - self.leaves)
        with m.If(dut.lookup.start):
            m.d.sync += late.eq((waiting != 0) | self.reaps)
        with m.Elif(self.reaps):
            m.d.sync += late.eq(1)
        with m.If(dut.lookup.done & self.ours):
            with m.If(self.has):
                m.d.comb += Assert(dut.lookup.found & (dut.lookup.session == self.number))
            with m.Else():
                m.d.comb += Assert(~dut.lookup.found | late)
        asked = dut.lookup.done & self.ours & self.has
        gone = dut.lookup.done & self.ours & ~dut.lookup.found & self.old_there
        m.d.comb += [Cover(asked), Cover(gone), Cover(self.enters), Cover(self.leaves)]


PROOFS = (
    Proof(
        name="tcp_index",
        core="cores.tcp.index.SessionIndex(4 sessions, 2 sets, 1 ahead), its parts hollow",
        says="agrees with a map; no tuple is entered twice in memory; removals find what they are"
        " to remove; no walk begins in a bucket that is being changed",
        module="trebuchet.cores.tcp.index",
        build=IndexProof,
        depth=17,
        cover_depth=22,
        method="bmc",
        bounded="the invariants that tie slots, cache and changes together are not written down",
        mutants=(
            Mutant("knows_no_better", "(at != k) & (spills | same)", "(at != k) & spills", 20),
            Mutant(
                "reads_at_once",
                "reader.ready & ~writer.busy & ~self.change",
                "reader.ready & ~self.change",
                20,
            ),
            Mutant("late_news", "self.stale[k] | self.revoked[k]", "self.stale[k]", 20),
        ),
        assumes="the dialogue's rules; what is there is reaped, once; the parts' data sheets",
        not_proved="the parts; that a look-up ends; other sizes; a reset while running",
    ),
)
