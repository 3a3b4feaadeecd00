"""Proofs of ``PacketsToFlits`` and ``FlitsToPackets`` in ``cores/router/adapter.py``.

Packets to flits, over public ports: of the beats that are offered at most one is taken in a cycle,
one is if any may go; it is on the link from the next cycle on, with all its fields, for the
destination that was named with it and on the VC of its stream; nothing else is on the link. A beat
is taken only with a credit, by the naive count of the contract; a stream whose beat may go sees at
most one beat of each other stream before. ``idle`` says that nothing is offered nor held.

Flits to packets: each stream has the beats that came on its VC, in order, unchanged (an arbitrary
one of each), from the cycle after they came, whatever the other streams do; the stream rules hold;
a beat that is taken gives a credit back in the next cycle, nothing else does; what the link's
sender counts as held is what is in the buffer and that credit; no overflow.

Where a flit has several phits, those at ``FlitsToPackets`` are what its receiver collects
(``router_phit.py``).

Not proved: a reset while running; other sizes than those named.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .buffer import BufferGhost
from .phit import SentFlit

__all__ = ["PROOFS"]

VCS, PLACES, RESERVED, SHARED = 2, 3, 1, 1
WIDTH, USER = 32, 3  # `empty` and `error` beside the data


def _held(m, name, sent, credit):
    """Rule 3: flits of each VC that were sent and whose credit has not come back; who may send."""
    held = [Signal(3, name=f"{name}_held{v}") for v in range(VCS)]
    for v, count in enumerate(held):
        m.d.sync += count.eq(count + sent[v] - credit[v])
    lent = sum(Mux(h > RESERVED, h - RESERVED, 0) for h in held)
    return held, Cat((h < RESERVED) | (lent < SHARED) for h in held), lent


class PacketsToFlitsProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        config, link, vcs = dut.config, dut.o, range(VCS)
        flit = Signal(config.flit_layout)
        moves, valid = Signal(VCS), Cat(dut.i[v].valid for v in vcs)
        for v in vcs:
            i = dut.i[v]
            free(m, i.valid, i.payload, dut.dest[v])
            stream_rules(m, i, Assume, f"i{v}")
            m.d.comb += moves[v].eq(i.valid & i.ready)
            with m.If(moves[v]):
                m.d.comb += [
                    flit.data.eq(i.payload.data),
                    flit.user.eq(Cat(i.payload.empty, i.payload.error)),
                    flit.dest.eq(dut.dest[v]),
                    flit.vc.eq(v),
                    flit.head.eq(i.payload.first),
                    flit.tail.eq(i.payload.last),
                ]
        phits = config.flit_width // config.phit_width
        sent = SentFlit(m, put=moves.any(), flit=flit, link=link, phits=phits)
        free(m, link.credit)
        held, may, lent = _held(m, "taken", moves, link.credit)
        could, ready = Signal(VCS), ~sent.busy | sent.last
        first = [sent.busy & (sent.number == 0) & (link.phit.vc == v) for v in vcs]
        for v in vcs:  # a credit is for a flit that the receiver has seen
            m.d.comb += Assume(~link.credit[v] | (held[v] > first[v]))
        m.d.comb += [
            could.eq(Mux(ready, valid & may, 0)),
            Assert((moves & ~could) == 0),
            Assert((moves & (moves - 1)) == 0),
            Assert(moves.any() == could.any()),
            Assert(dut.idle == ((sum(held) == 0) & ~valid.any())),
        ]
        self._fair(m, could, moves)
        # Invariants.
        inside = {"counter": dut.counter, "sender": dut.sender}
        for v in vcs:
            m.d.comb += Assert(inside["counter"].held[v] == held[v])
        m.d.comb += [
            Assert(inside["counter"].lent == lent),
            Assert(lent <= SHARED),
            Assert(inside["sender"].left == Mux(sent.busy, phits - 1 - sent.number, 0)),
        ]
        both = Signal()
        with m.If(sum(held) == PLACES):
            m.d.sync += both.eq(1)
        m.d.comb += [Cover(both & dut.idle), Cover((held[0] == 2) & moves[1])]
        return m

    def _fair(self, m, could, moves):
        chosen, waited = Signal(range(VCS)), Signal(range(VCS + 1))
        m.d.comb += [chosen.eq(AnyConst(len(chosen))), Assume(chosen < VCS)]
        with m.If(moves.any()):
            m.d.sync += waited.eq(
                Mux(could.bit_select(chosen, 1) & ~moves.bit_select(chosen, 1), waited + 1, 0)
            )
        m.d.comb += [Assert(waited <= VCS - 1), Cover(waited == VCS - 1)]
        # Invariants: of two streams that one is behind which was not served last.
        behind = self.dut.arbiter.behind
        m.d.comb += Assert(behind[0] == 0)
        with m.If(waited != 0):
            m.d.comb += Assert(behind[1] == (chosen == 1))


class FlitsToPacketsProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        link, valid, phit = dut.i, dut.i.valid, dut.i.phit
        free(m, valid, phit)
        if dut.config.phits > 1:  # flits, as the receiver collects them
            valid, phit = dut.receiver.get, dut.receiver.flit
        self.flit = phit
        comes = [valid & (phit.vc == v) for v in range(VCS)]
        self.held, may, lent = _held(m, "sent", comes, link.credit)
        with m.If(valid):
            m.d.comb += Assume(Cat(c & ok for c, ok in zip(comes, may, strict=True)).any())
            with m.If(~phit.tail):
                m.d.comb += Assume(phit.user == 0)
        self.ghost = BufferGhost(m, dut.buffer)
        m.d.comb += [Assert(~dut.overflow & ~dut.buffer.overflow), Assert(lent <= SHARED)]
        ended = Signal(VCS)
        for v in range(VCS):
            self._stream(m, v, comes[v])
            with m.If(dut.o[v].valid & dut.o[v].ready & dut.o[v].payload.last):
                m.d.sync += ended[v].eq(1)
        empty = sum(self.ghost.level) == 0
        m.d.comb += [
            Cover(ended.all() & empty),
            Cover((self.ghost.level[0] == 2) & (self.ghost.level[1] == 1)),
        ]
        return m

    def _stream(self, m, v, comes):
        link, phit, o, ghost = self.dut.i, self.flit, self.dut.o[v], self.ghost
        free(m, o.ready)
        place, level = ghost.place[v], ghost.level[v]
        opened, moved, want = (
            Signal(name=f"open{v}"),
            Signal(name=f"moved{v}"),
            Signal(WIDTH + USER + 2),
        )
        with m.If(comes):
            m.d.comb += Assume(phit.head == ~opened)
            m.d.sync += opened.eq(~phit.tail)
            with m.If(ghost.chosen[v]):
                m.d.sync += want.eq(Cat(phit.data, phit.user, phit.head, phit.tail))
        m.d.sync += moved.eq(o.valid & o.ready)
        begins = stream_rules(m, o, Assert, f"o{v}", chosen=(place == 0))
        payload = o.payload
        m.d.comb += [
            Assert(link.credit[v] == moved),
            Assert(o.valid == (level != 0)),
            Assert(self.held[v] == level + moved),
        ]
        got = Cat(payload.data, payload.empty, payload.error, payload.first, payload.last)
        with m.If(o.valid & (place == 0)):
            m.d.comb += Assert(got == want)
        # Invariants: packets in the queue are whole, from the one that leaves to the open one.
        with m.If(place < level):
            m.d.comb += [
                Assert(Cat(ghost.word[v], ghost.tag[v]) == want),
                Assert(want[-1] | (want[WIDTH : WIDTH + USER] == 0)),
            ]
        now = begins
        for k, tag in enumerate(ghost.tags[v]):
            here = level > k
            m.d.comb += Assert(~here | (Value.cast(tag)[0] == now))
            now = Mux(here, Value.cast(tag)[1], now)
        m.d.comb += Assert(now == ~opened)


def _proof(name, core, harness, phit, says, mutants):
    def build(cores):
        contract = __import__("trebuchet.cores.router.contract", fromlist=["LinkConfig"])
        config = contract.LinkConfig(
            vcs=VCS,
            flit_width=WIDTH,
            phit_width=phit,
            dest_width=1,
            user_width=USER,
            buffer_flits=PLACES,
            reserved=RESERVED,
        )
        return harness(getattr(cores, core)(config))

    return Proof(
        name=f"router_{name}",
        core=f"cores.router.adapter.{core}(2 VCs, 32 bits in phits of {phit}, 3 flits, 1 reserved)",
        says=says,
        module="trebuchet.cores.router.adapter",
        build=build,
        depth=3,
        cover_depth=14,
        mutants=mutants,
        assumes="the stream rules at streams, those of the contract at links",
    )


SENDS = "each beat is a flit on its VC, in order, none without credit; fair; idle is exact"
SEND_MUTANTS = (
    Mutant("needs_no_credit", "counter.ready[v] & sender.ready", "sender.ready"),
    Mutant("ready_to_all", "self.i[v].ready.eq(arbiter.o[v])", "self.i[v].ready.eq(arbiter.i[v])"),
    Mutant("wrong_vc", "sender.flit.vc.eq(vc)", "sender.flit.vc.eq(~vc)"),
    Mutant("idle_while_held", "counter.idle & ~valid.any()", "~valid.any()"),
    Mutant(
        "turns_user_bits",
        'Cat(beats["empty"], beats["error"])',
        'Cat(beats["error"], beats["empty"])',
    ),
)
PROOFS = (
    _proof("packets_to_flits", "PacketsToFlits", PacketsToFlitsProof, 32, SENDS, SEND_MUTANTS),
    _proof(
        "packets_to_phits",
        "PacketsToFlits",
        PacketsToFlitsProof,
        16,
        SENDS,
        (
            Mutant("overwrites", "counter.ready[v] & sender.ready", "counter.ready[v]"),
            Mutant(
                "first_for_head", 'sender.flit.tail.eq(beats["last"])', "sender.flit.tail.eq(1)"
            ),
            Mutant(
                "destination_of_another",
                "sender.flit.dest.eq(Array(self.dest[v] for v in vcs)[vc]), sender.flit.vc.eq(vc)",
                "sender.flit.dest.eq(Array(self.dest[v] for v in vcs)[0]), sender.flit.vc.eq(vc)",
            ),
        ),
    ),
    _proof(
        "flits_to_packets",
        "FlitsToPackets",
        FlitsToPacketsProof,
        32,
        "streams keep the rules, content and order of each VC; a credit for each beat that leaves",
        (
            Mutant("credits_offers", "o.valid & o.ready", "o.valid"),
            Mutant("to_all_streams", "receiver.get & (flit.vc == v)", "receiver.get"),
            Mutant("turns_the_tag", "Cat(flit.head, flit.tail)", "Cat(flit.tail, flit.head)"),
            Mutant(
                "forgets_user",
                "buffer.word.eq(Cat(flit.data, flit.user))",
                "buffer.word.eq(flit.data)",
            ),
            Mutant(
                "credits_the_wrong_vc",
                "self.i.credit.eq(buffer.take)",
                "self.i.credit.eq(buffer.take[::-1])",
            ),
        ),
    ),
    _proof(
        "phits_to_packets",
        "FlitsToPackets",
        FlitsToPacketsProof,
        16,
        "streams keep the rules, content and order of each VC; a credit for each beat that leaves",
        (
            Mutant(
                "stores_each_phit", "receiver.get & (flit.vc == v)", "self.i.valid & (flit.vc == v)"
            ),
            Mutant(
                "low_half_twice",
                "Cat(flit.data, flit.user)",
                "Cat(flit.data[:16], flit.data[:16], flit.user)",
            ),
        ),
    ),
)
