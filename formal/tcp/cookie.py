"""Proofs of SYN cookies: ``cores/tcp/cookie.py`` and what the receive engine does with them.

* The cookie: its number, whether an ACK could be one's and is, and the MSS that comes back, in
  plain arithmetic; what is hashed stays while it is.
* The engine's way with them: as ``tcp_receive_flow``, with one look-up after the other, each ended
  before the next; a session without a SYN only for an ACK whose cookie has been found good.
* The record that such an ACK makes (as ``tcp_receive_make``).

Not proved: that the hash cannot be guessed; a reset while running.
"""

from dataclasses import replace

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .classifier import SMALL
from .receive_flow import FlowProof
from .receive_make import MakeProof, told

__all__ = ["PROOFS"]

COOKIES = replace(SMALL, cookies=True)
COOKIE = "trebuchet.cores.tcp.cookie"


class CookieProof(Elaboratable):
    """Any segments, hashes and times; each output is held against what was there a cycle ago."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        seg, ack = dut.segment, dut.segment.ack
        free(m, seg, dut.mss, dut.first, dut.service, dut.now, dut.hold, dut.sent, dut.hash)

        def past(value, name):
            before = Signal(len(value), name=f"past_{name}")
            m.d.sync += before.eq(value)
            return before

        # Time: a slot begins when bit 15 changes, seen two cycles later.
        half = past(dut.now[15], "half")
        begins = past(dut.now[15] ^ half, "begins")
        slot = Signal(13)
        m.d.sync += slot.eq(slot + begins)
        self._lifetime(m, begins)

        number = ack & 0xFFFF_FFFE  # one less than an odd one, and nothing else is looked at
        age = (slot - number[3:5])[:2]  # slots since the cookie's
        fresh = ((age == 0) & dut.served[0]) | ((age == 1) & dut.served[1])
        size = (dut.mss >= 1220) + (dut.mss >= 1440) + (dut.mss >= 1460)
        mixed = self.mixed(dut.hash, dut.first)
        cookie = ((mixed >> 5) << 5) + ((dut.then & 3) << 3) + (size << 1)
        now = Mux(seg.flags.syn | (age == 0), slot, slot - 1)[:13]
        block = (seg.ip << 32) + (seg.remote_port << 16) + (dut.service << 13) + dut.then
        begun = Signal()
        m.d.sync += begun.eq(1)
        held = past(dut.hold, "hold")
        want = {
            "number": cookie[:32],
            "able": dut.mss > 535,
            "plausible": ack[0] & fresh,
            "good": (number ^ mixed) < 32,
            "told": told(dut.config, ack),
            "then": Mux(dut.hold, dut.then, now),
            "block": Mux(dut.hold, dut.block, block[:64]),
        }
        for name, value in want.items():
            m.d.comb += Assert(~begun | (getattr(dut, name) == past(value, name)))
        m.d.comb += [
            Assert(dut.slot == slot),
            Cover(dut.plausible & dut.good & (slot == 2) & (dut.told == 1220)),
            Cover(held & (dut.then != slot)),
        ]
        return m

    @staticmethod
    def mixed(hash, first):
        return (hash ^ first ^ (first << 27))[:32]

    def _lifetime(self, m, begins):
        """A cookie that was sent counts in its slot and the next; none does long after the last."""
        dut = self.dut
        marked, elapsed = Signal(), Signal(range(4))  # slots since the one of a cookie
        silent = Signal(range(4), init=3)  # slots that began since any was sent
        late = dut.then != dut.slot
        m.d.comb += Assume(~dut.sent | ~late | (dut.then == (dut.slot - 1)[:13]))
        with m.If(dut.sent & AnySeq(1)):
            m.d.sync += [marked.eq(1), elapsed.eq(late + begins)]
        with m.Elif(begins & (elapsed != 3)):
            m.d.sync += elapsed.eq(elapsed + 1)
        with m.If(dut.sent):
            m.d.sync += silent.eq(0)
        with m.Elif(begins & (silent != 3)):
            m.d.sync += silent.eq(silent + 1)
        m.d.comb += [
            Assert(~marked | (elapsed != 0) | dut.served[0]),
            Assert(~marked | (elapsed != 1) | dut.served[1]),
            Assert((silent == 0) | ~dut.served[0]),
            Assert((silent <= 1) | ~dut.served[1]),
            # Invariants.
            Assert(~dut.served[0] | dut.served[1] | (silent == 0)),
            Assert(~marked | (elapsed + 1 >= silent)),
            Cover(marked & (elapsed == 1)),
        ]


class CookieFlow(FlowProof):
    """Four states more: one look-up ends (BAKE, TASTE) and another begins (ANEW)."""

    states = (*FlowProof.states, "BAKE", "ANEW", "BAKED", "TASTE")

    def _dialogues(self):
        dut, at = self.dut, self.at
        between = at["BAKE"] | at["TASTE"] | (at["TAIL"] & dut.made & dut.good)
        return dut.lookup.finish & ~between, at["IDLE"] | at["ANEW"]

    def _tuple(self):
        return Mux(self.dut.bakes, self.dut.cookie.block, super()._tuple())

    def _vouched(self):
        return self.dut.good

    def _partners(self, m):
        """The hash stays as long as the look-up goes on."""
        super()._partners(m)
        dut = self.dut
        right, was = Signal(), Signal(32)
        m.d.sync += [
            right.eq(dut.lookup.hash_valid & dut.lookup.done & ~dut.lookup.finish),
            was.eq(dut.lookup.hash),
        ]
        m.d.comb += Assume(~right | (dut.lookup.hash_valid & (dut.lookup.hash == was)))

    def _more_ways(self, ways, counts, stranger, crowded):
        dut, at, seg = self.dut, self.at, self.dut.input.payload.body.segment
        f, cookie = seg.flags, dut.cookie
        able = crowded & cookie.able
        heard = dut.handshake.local.any() & dut.settings.enable
        maybe = stranger & f.ack & ~f.syn & ~f.rst & heard & cookie.plausible
        baked = dut.bakes & f.syn
        ways["DECIDE"].insert(0, (able | maybe, "BAKE"))
        ways["LOOKUP"].insert(0, (dut.lookup.done & dut.lookup.hash_valid & dut.bakes, "BAKED"))
        ways["TAIL"].insert(0, (dut.made & dut.good, "IDLE"))
        ways |= {
            "BAKE": [(1, "ANEW")],
            "ANEW": [(~dut.lookup.ready, "ANEW"), (1, "LOOKUP")],
            "BAKED": [(1, "TASTE")],
            "TASTE": [(~f.syn & cookie.good, "ANEW"), (f.syn, "REPLY"), (1, "TAIL")],
        }
        taken = at["TASTE"] & ~f.syn & cookie.good
        answered = at["REPLY"] & ~dut.reply.valid
        counts |= {
            "refused_half_open": crowded & ~able,
            "rst_tx": answered & ~baked,
            "cookies_sent": answered & baked,
            "cookies_taken": taken,
            "unknown": (stranger & ~maybe) | (at["TASTE"] & ~f.syn & ~cookie.good),
        }

    def _reply(self, seg, f):
        dut = self.dut
        baked, config = dut.bakes & f.syn, dut.config
        answer = {
            "seq": dut.cookie.number,
            "ack": (seg.seq + 1)[:32],
            "flags": 0b10010,
            "window": min(config.window, 65535),
            "mss": config.mss,
        }
        reset = super()._reply(seg, f)
        return reset | {n: Mux(baked, value, reset[n]) for n, value in answer.items()}

    def elaborate(self, platform):
        m = super().elaborate(platform)
        dut, at, f = self.dut, self.at, self.dut.input.payload.body.segment.flags
        seg, cookie = dut.input.payload.body.segment, dut.cookie
        first = Mux(f.syn, (seg.seq + 1)[:32], seg.seq)
        mixed = CookieProof.mixed(dut.lookup.hash, first)
        right = seg.ack[5:] == mixed[5:]
        tried = Signal()  # an ACK has been found to be that of a cookie
        with m.If(at["TASTE"] & ~f.syn & right):
            m.d.sync += tried.eq(1)
        with m.Elif(at["IDLE"]):
            m.d.sync += tried.eq(0)
        baked = at["TASTE"] | (at["REPLY"] & dut.bakes)
        bakes = ("LOOKUP", "BAKED", "TASTE", "REPLY", "TAIL", "ANEW")
        m.d.comb += [
            Assert(dut.good == (tried & ~at["IDLE"])),
            Assert(~dut.good | (f.ack & ~f.syn & ~f.rst)),
            Assert(~baked | (cookie.good == right)),
            Assert(~baked | (cookie.number[5:] == mixed[5:])),
            Assert(~(at["BAKED"] | baked) | (dut.bakes & dut.lookup.hash_valid)),
            Assert(~Cat(at[name] for name in ("BAKE", "ANEW", "BAKED")).any() | ~self.given),
            Assert(~baked | ~self.given),
            Assert(~at["ANEW"] | (dut.owed == self.owes(seg))),
            Assert(~dut.bakes | Cat(at[name] for name in bakes).any()),
            Assert(~dut.bakes | ~dut.good),
            Assert(~(at["IDLE"] & dut.lookup.start) | (~dut.bakes & ~dut.good)),
            Assert(~dut.bakes | (~f.rst & (f.ack != f.syn))),
            Assert(~(at["BAKE"] | at["ANEW"]) | ~dut.made),
            Cover(dut.count.cookies_taken),
            Cover(dut.lookup.insert & dut.good),
        ]
        return m


PROOFS = (
    Proof(
        name="tcp_cookie",
        core="cores.tcp.cookie.SynCookie",
        says="a number is known again in its slot of time and the next, and no other number is",
        module=COOKIE,
        build=lambda cores: CookieProof(cores.SynCookie(COOKIES)),
        depth=4,
        cover_depth=24,
        mutants=(
            Mutant("any_hash", "seg.ack[5:] == mixed", "seg.ack[6:] == mixed[1:]", 12),
            Mutant(
                "anywhere",
                "self.hash[5:] ^ self.first[5:] ^ Cat(C(0, 22), self.first[:5])",
                "self.hash[5:] ^ Cat(C(0, 22), self.first[:5])",
                12,
            ),
            Mutant("nearly_there", "C(0, 22), self.first[:5]", "C(0, 27)", 12),
            Mutant(
                "for_ever",
                "self.sent, served[0] | self.sent",
                "self.sent, served[1] | self.sent",
                12,
            ),
            Mutant("forgets_the_late", "self.sent.replicate(2)", "self.sent", 12),
            Mutant("of_any_time", "with m.If(~self.hold):", "with m.If(1):", 12),
            Mutant("too_large", "self.mss >= least", "self.mss + 99 >= least", 12),
        ),
        assumes="a cookie is sent in the slot in which it was hashed, or the next",
        not_proved="that the hash cannot be guessed",
    ),
    Proof(
        name="tcp_cookie_flow",
        core="cores.tcp.receive.ReceiveEngine (with SYN cookies)",
        says="without a SYN, only the ACK of a good cookie makes a session; one look-up at a time",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: CookieFlow(cores.ReceiveEngine(COOKIES)),
        depth=5,
        cover_depth=30,
        mutants=(
            Mutant("takes_all", "with m.If(~syn & self.cookie.good):", "with m.If(~syn):", 22),
            Mutant(
                "of_resets",
                "flags.ack & ~flags.syn & ~flags.rst & listens",
                "flags.ack & listens",
                30,
            ),
            Mutant("early", 'm.next = "TASTE"', 'm.next = "REPLY"', 20),
            Mutant("two_at_once", "with m.If(self.lookup.ready):", "with m.If(1):", 18),
            Mutant("once_more", "ended = ended & ~(made & self.good)", "ended = ended", 30),
        ),
        assumes="the contracts of session table, store, memory and sender; registers stand still",
        not_proved="progress, which depends on the partners; a reset while running",
    ),
    Proof(
        name="tcp_cookie_make",
        core="cores.tcp.receive.ReceiveEngine (with SYN cookies)",
        says="the ACK of a cookie makes the record that its SYN would have made, its SYN-ACK sent",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: MakeProof(cores.ReceiveEngine(COOKIES)),
        depth=7,
        cover_depth=40,
        mutants=(
            Mutant(
                "counts_its_syn",
                "[self.mss.eq(self.told), self.seq.eq(seg.seq)]",
                "[self.mss.eq(self.told), self.seq.eq(seg.seq + 1)]",
                40,
                where="trebuchet.cores.tcp.handshake",
            ),
            Mutant(
                "answers_again",
                "w.syn_due.eq(~self.made if self.config.cookies else 1)",
                "w.syn_due.eq(1 if self.config.cookies else 1)",
                40,
                where="trebuchet.cores.tcp.handshake",
            ),
        ),
        assumes="the segment and the registers stand still (tcp_cookie_flow)",
    ),
)
