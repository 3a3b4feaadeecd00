"""Proofs of the search for ICMP errors, ``cores/tcp/icmp.py``, between parts that others prove.

Its header stripper, checksums and queue are replaced by ones that do whatever their contracts
allow. A naive reading of each datagram by the places of its words (RFC 791, 792, 1191), in numbers
that do not wrap, says for frames of any content and length, any distance apart:

* what of it is the datagram, and whether the frame is shorter than it says;
* which half words each checksum is given, and that the sums looked at are those of this frame;
* that a notice is handed on, with exactly its fields, if and only if nothing is wrong with its
  frame, and that each other message leaves no trace but one count, under its first reason, and
  each other frame none.

A second proof, with the real stripper, is of the one thing that is taken from the frames as they
come in: whether their first six bytes are ``mac``.

Not proved: a reset while running; the parts, which have proofs of their own.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import (
    Assert,
    Assume,
    Cover,
    Elaboratable,
    Fragment,
    Mux,
    Signal,
    Value,
    signed,
)

from ..kit.inside import replaced
from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated
from ..stream import free, new_harness, stream_rules
from .parser import number

__all__ = ["PROOFS"]

REASONS = ("errors", "malformed", "ip_checksum", "icmp_checksum", "foreign", "overflow")
#: What is known of a datagram, beside its notice.
NAMES = {"off": 1, "typed": 1, "fragment": 1, "foreign": 1, "ihl": 4, "total": 16}


def _outputs(name, part):
    if name == "EthernetStrip":
        return (part.valid, part.data, part.first, part.last, part.bytes, part.error, part.type)
    if name == "Checksum":
        return (part.total,)
    return (part.i.ready, part.o.valid, part.o.payload)


def free_parts(module, parts):
    """While this lasts, ``module`` makes parts that do anything; they are put into ``parts``."""
    names = ("EthernetStrip", "Checksum", "StreamFifo")
    return replaced(module, names, lambda m, name, part: free(m, *_outputs(name, part)), parts)


class IcmpProof(Elaboratable):
    def __init__(self, module, width):
        self.module = module
        self.width, self.n, self.lanes = width, width // 8, width // 32

    def elaborate(self, platform):
        m = new_harness()
        parts = {}
        with free_parts(self.module, parts):
            self.dut = dut = self.module.IcmpErrors(self.width, depth=2)
            m.submodules.dut = Fragment.get(dut, platform)
        self.strip, self.sums = parts["EthernetStrip"][0], parts["Checksum"]
        self.queue = parts["StreamFifo"][0]
        free(m, dut.frame.valid, dut.frame.payload, dut.notice.ready, dut.mac)
        m.d.comb += dut.ip.eq(AnyConst(32))
        self._strip_rules(m)
        self._datagram(m)
        self._fields(m)
        self._sums_given(m)
        self._verdict(m)
        m.d.comb += [
            Assert(dut.frame.ready),
            Assert(dut.notice.valid == self.queue.o.valid),
            Assert(dut.notice.payload.as_value() == self.queue.o.payload.as_value()),
            Assert(self.queue.o.ready == dut.notice.ready),
        ]
        return m

    def _strip_rules(self, m):
        """What the stripper keeps to."""
        s = self.strip
        inside, over, kind = Signal(), Signal(), Signal(16)
        m.d.sync += [over.eq(s.valid & s.last), kind.eq(s.type)]
        with m.If(s.valid):
            m.d.sync += inside.eq(~s.last)
            m.d.comb += Assume(s.first == ~inside)
        m.d.comb += [
            Assume(~over | ~s.valid),
            Assume(~inside | (s.type == kind)),
            Assume((s.bytes >= 1) & (s.bytes <= self.n)),
        ]
        self.inside = inside

    def _datagram(self, m):
        """Stage b: the bytes of the datagram, others as 0, and what the frame's end says."""
        s, dut, n = self.strip, self.dut, self.n
        at, total, ihl = Signal(20, name="at"), Signal(16, name="total"), Signal(4, name="ihl")
        here, long, held = Signal(20), Signal(16), Signal(range(n + 1))
        begun = Signal()
        m.d.comb += [
            here.eq(Mux(s.first, 0, Mux(at >= 1 << 18, at, at + n))),
            long.eq(Mux(s.first, number(s.data[16:32]), total)),
            held.eq(Mux(s.last, s.bytes, n)),
        ]
        names = {"valid": 1, "first": 1, "end": 1, "bad": 1, "wanted": 1, "at": 20}
        g = self.g = {name: Signal(w, name=f"g_{name}") for name, w in names.items()}
        data = self.data = Signal(self.width)
        right = (s.type == 0x0800) & (s.data[4:8] == 4) & (s.data[:4] >= 5) & dut.addressed
        m.d.sync += [
            g["valid"].eq(s.valid),
            g["first"].eq(s.valid & s.first),
            g["end"].eq(s.valid & s.last),
            g["bad"].eq(s.error | (here + held < long)),
        ]
        with m.If(s.valid):
            m.d.sync += [at.eq(here), total.eq(long), begun.eq(1), g["at"].eq(here)]
            for i in range(n):
                byte = Mux((here + i < long) & (i < held), s.data.word_select(i, 8), 0)
                m.d.sync += data.word_select(i, 8).eq(byte)
            with m.If(s.first):
                m.d.sync += [g["wanted"].eq(right), ihl.eq(s.data[:4])]
        b, lanes = dut.b, self.lanes
        index, most = Signal(signed(20)), 5 // lanes + 1
        m.d.comb += index.eq((at >> 2) - ihl)
        m.d.comb += [
            Assert(b.valid == g["valid"]),
            Assert(b.end == g["end"]),
            Assert(~b.end | (b.bad == g["bad"])),
            Assert(begun | (~b.valid & ~b.end & ~self.inside)),
            Assert(at[: n.bit_length() - 1] == 0),
            Assert(g["at"] == at),
        ]
        with m.If(g["valid"]):
            m.d.comb += [Assert(b.first == g["first"]), Assert(g["first"] == (at == 0))]
        m.d.comb += [Assert(b.data == data), Assert(b.wanted == g["wanted"])]
        with m.If(begun):
            m.d.comb += [
                Assert(dut.left == Mux(at + n < total, total - at - n, 0)),
                Assert(b.at == Mux(at // n > most, most, at // n)),
                Assert(Mux(index < 16, b.word == index, (b.word >= 16) & (b.word < 18))),
            ]
        self.ihl, self.total, self.begun, self.at = ihl, total, begun, at

    def _fields(self, m):
        """Stage b: the fields, by the number of the word that they lie in."""
        g, f, ip = self.g, self.dut.f, self.dut.ip
        h = self.h = {name: Signal(width, name=f"h_{name}") for name, width in NAMES.items()}
        self.said = said = Signal(f.notice.shape(), name="said")
        with m.If(g["valid"]):
            with m.If(g["first"]):
                m.d.sync += [h["off"].eq(~g["wanted"]), h["ihl"].eq(self.data[:4])]
                m.d.sync += [h[name].eq(0) for name in ("typed", "fragment", "foreign")]
                m.d.sync += h["total"].eq(number(self.data[16:32]))
            for lane in range(self.lanes):
                word, place = self.data.word_select(lane, 32), (g["at"] >> 2) + lane
                octet = [word.word_select(k, 8) for k in range(4)]
                with m.If(place == 1):
                    m.d.sync += h["fragment"].eq(number(word[16:]) & 0x3FFF != 0)
                with m.If((place == 2) & (octet[1] != 1)):
                    m.d.sync += h["off"].eq(1)
                with m.If((place == 4) & (number(word) != ip)):
                    m.d.sync += h["off"].eq(1)
                with m.If(place >= 5):
                    self._message(m, place - self.ihl, word, octet, h, said)
        m.d.comb += [Assert(f[name] == h[name]) for name in NAMES]
        m.d.comb += Assert(f.notice.as_value() == said.as_value())
        # Bytes behind the datagram count as 0, so its first word is right if there is a second one.
        with m.If(self.begun & ~(g["valid"] & g["first"])):
            cut = ((self.at == 0) & ~self.inside) | (self.total < 4)
            m.d.comb += Assert(cut | ((h["ihl"] == self.ihl) & (h["total"] == self.total)))
            m.d.comb += Assert(~h["typed"] | ((self.at != 0) & (self.total > 20)))
        with m.If(~self.begun):
            m.d.comb += Assert(~h["typed"])

    def _message(self, m, k, word, octet, h, said):
        """Word ``k`` of the message."""
        ip, index = self.dut.ip, Signal(signed(20))
        m.d.comb += index.eq(k)
        wrong = (
            ((index == 2) & (octet[0] != 0x45))
            | ((index == 3) & (number(word[16:]) & 0x1FFF != 0))
            | ((index == 4) & (octet[1] != 6))
            | ((index == 5) & (number(word) != ip))
        )
        with m.If(wrong):
            m.d.sync += h["foreign"].eq(1)
        with m.If(index == 0):
            m.d.sync += [h["typed"].eq(octet[0] == 3), said.code.eq(octet[1])]
        with m.If(index == 1):
            m.d.sync += said.mtu.eq(number(word[16:]))
        with m.If(index == 6):
            m.d.sync += said.ip.eq(number(word))
        with m.If(index == 7):
            m.d.sync += said.local_port.eq(number(word[:16]))
            m.d.sync += said.remote_port.eq(number(word[16:]))
        with m.If(index == 8):
            m.d.sync += said.seq.eq(number(word))

    def _sums_given(self, m):
        """Which half words count: the IPv4 header's; those of the message."""
        g = self.g
        header_sum, message_sum = self.sums
        for unit in self.sums:
            m.d.comb += [
                Assert(unit.en == g["valid"]),
                Assert(unit.start == (g["valid"] & g["first"])),
                Assert(~unit.en | (unit.data == self.data)),
            ]
        with m.If(g["valid"]):
            for k in range(2 * self.lanes):
                header = g["at"] + 2 * k < self.ihl << 2
                m.d.comb += Assert(header_sum.keep[k] == header)
                m.d.comb += Assert(message_sum.keep[k] == ~header)

    def _verdict(self, m):
        """What was known when the frame was over decides three cycles after its last beat.

        A sum shows a beat three cycles after it was given (``checksum``), so those are the frame's.
        """
        h, g, queue, csr = self.h, self.g, self.queue, self.dut.csr
        length = Signal(signed(20))
        m.d.comb += length.eq(self.total - (self.ihl << 2))
        known = {
            "meant": h["typed"] & ~h["off"],
            "malformed": h["fragment"] | (length < 36),
            "foreign": h["foreign"],
            "said": self.said.as_value(),
        }
        ends, bad = g["end"], g["bad"]
        # The fields are complete a cycle after the last beat; two more, and the verdict is there.
        over = self._later(m, ends, 3, "over")
        errors = self._later(m, bad, 3, "errors")
        late = {k: self._later(m, Value.cast(v), 2, f"late_{k}") for k, v in known.items()}
        reasons = {
            "errors": errors,
            "malformed": late["malformed"],
            "ip_checksum": self.sums[0].total != 0xFFFF,
            "icmp_checksum": self.sums[1].total != 0xFFFF,
            "foreign": late["foreign"],
            "overflow": ~queue.i.ready,
        }
        good = over & late["meant"]
        events = {}
        for name in REASONS:
            events[name] = good & reasons[name]
            good = good & ~reasons[name]
        events["notices"] = good
        m.d.comb += Assert(queue.i.valid == good)
        with m.If(good):
            m.d.comb += Assert(queue.i.payload.as_value() == late["said"])
        settled = Signal(range(8))
        m.d.sync += settled.eq(Mux(settled == 7, 7, settled + 1))
        for name, event in events.items():
            count = getattr(csr, name)
            past = Signal.like(count, name=f"past_{name}")
            counted = self._later(m, event, 2, f"counted_{name}")
            m.d.sync += past.eq(count)
            with m.If(settled >= 4):
                m.d.comb += Assert(count == (past + counted)[:32])
            m.d.comb += Cover(event & (settled == 7))

    @staticmethod
    def _later(m, value, cycles, name):
        for k in range(cycles):
            after = Signal(len(value), name=f"{name}_{k}")
            m.d.sync += after.eq(value)
            value = after
        return value


class AddressProof(Elaboratable):
    """With the first beat behind a header, ``addressed`` says whether its frame goes to ``mac``."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        inner = elaborated(dut)
        strip = inner.submodules.strip
        elaborated(strip)
        m.submodules.dut = dut
        free(m, dut.frame.valid, dut.frame.payload, dut.notice.ready, dut.ip)
        m.d.comb += dut.mac.eq(AnyConst(48))
        stream_rules(m, dut.frame, Assume, "frame")
        n, beat = dut.width // 8, dut.frame.payload
        header, need = -(-14 // n), -(-6 // n)
        came, first, begins, right = Signal(range(header + 1)), Signal(48), Signal(), Signal()
        m.d.sync += begins.eq(0)
        with m.If(dut.frame.valid):
            m.d.sync += came.eq(Mux(beat.last, 0, Mux(came == header, header, came + 1)))
            for k in range(need):
                with m.If(came == k):
                    m.d.sync += first[8 * n * k : 8 * n * (k + 1)].eq(beat.data)
            with m.If((came == header) & strip.started):
                m.d.sync += [begins.eq(1), right.eq(first == dut.mac)]
        m.d.comb += [
            Assert(~(strip.valid & strip.first) | begins),
            Assert(~begins | (dut.addressed == right)),
            Assert(dut.index == Mux(came > need, need, came)),
            Assert((strip.index == came) & (came <= header)),
            Assert((came < need) | (dut.addressed == (first == dut.mac))),
            Cover(strip.valid & strip.first & dut.addressed),
            Cover(strip.valid & strip.first & ~dut.addressed & (first[8:] == dut.mac[8:])),
        ]
        if need > 1:
            with m.If(came == 1):
                m.d.comb += Assert(dut.addressed == (first[: 8 * n] == dut.mac[: 8 * n]))
        return m


_MODULE = "trebuchet.cores.tcp.icmp"

MUTANTS = (
    Mutant("heeds_echoes", "f.typed.eq(word[:8] == 3)", "f.typed.eq(word[:8] == 8)"),
    Mutant("any_offset", "3: Cat(word[16:21], word[24:]) != 0", "3: word[24:] != 0"),
    # A message must be whole before its verdict looks at more than `errors` and `malformed`.
    Mutant("any_sum", '"icmp_checksum": sums[1] != 0xFFFF', '"icmp_checksum": 0 & sums[1]', 22),
    Mutant(
        "too_late",
        "meant.eq(ended_2 & f.typed & ~f.off)",
        "meant.eq(ended & f.typed & ~f.off)",
        context="ended, ended_2 = Signal(), Signal()",
    ),
    Mutant("too_short", "_QUOTE = 8 + 20 + 8", "_QUOTE = 8 + 20 + 4", 22),
    Mutant(
        "sums_the_padding",
        "byte, inside = strip.data.word_select(i, 8), (here > i) & (held > i)",
        "byte, inside = strip.data.word_select(i, 8), 1 & (held > i)",
    ),
    Mutant("never_short", "strip.error | (here > held)", "strip.error"),
    Mutant(
        "ports_swapped",
        "n.local_port.eq(byteswap(word[:16]))",
        "n.local_port.eq(byteswap(word[16:]))",
    ),
)

PROOFS = tuple(
    Proof(
        name=f"tcp_icmp_{width}",
        core=f"cores.tcp.icmp.IcmpErrors({width})",
        says="a notice for each good ICMP error about us, with its fields; else one count or none",
        module=_MODULE,
        build=lambda cores, width=width: IcmpProof(cores, width),
        depth=5,
        cover_depth=22 if width == 32 else 16,
        mutants=MUTANTS if width == 32 else MUTANTS[:2],
        assumes="what the proofs of stripper and checksums say; the address stands still",
        not_proved="a reset while running; the parts, which have proofs of their own",
    )
    for width in (32, 64)
) + tuple(
    Proof(
        name=f"tcp_icmp_address_{width}",
        core=f"cores.tcp.icmp.IcmpErrors({width})",
        says="a frame is looked at only if its first six bytes are the board's MAC",
        module=_MODULE,
        build=lambda cores, width=width: AddressProof(cores.IcmpErrors(width, depth=2)),
        depth=2,
        cover_depth=10,
        mutants=(Mutant("half_of_it", "right & (result | (index == 0))", "right"),)
        if width == 32
        else (Mutant("all_frames", "right & (result | (index == 0))", "1"),),
        assumes="the stream rules on the frames; the address stands still",
    )
    for width in (32, 64)
)
