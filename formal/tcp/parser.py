"""Proofs of the receive parser, ``cores/tcp/parser.py``, between parts that others prove.

Its header stripper, checksums, search for options, buffer and queue are replaced by ones that do
whatever their contracts allow. A naive reading of each datagram by byte positions (RFC 791; RFC
9293, 3.1), in numbers that do not wrap, says for frames of any content and length, any distance
apart:

* what of it is the datagram, and whether the frame is shorter than it says;
* which half words each checksum is given, and the pseudo header; that the sums looked at are those
  of this frame; which words are given to the search for options, each once, with the next;
* where the payload begins and ends, and what is written, aligned to its first byte;
* that a segment is handed on, with exactly its fields, if and only if nothing is wrong with its
  frame, and that each other frame leaves no trace but one count, under its first reason.

Not proved: a reset while running; the parts, which have proofs of their own.
"""

from itertools import pairwise

from amaranth.hdl import (
    Assert,
    Assume,
    Cat,
    Cover,
    Elaboratable,
    Fragment,
    Mux,
    Signal,
    Value,
    signed,
)
from trebuchet.cores.tcp.segment import RxSegmentLayout

from ..kit.inside import replaced
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

OUTPUTS = {
    "EthernetStrip": "valid data first last bytes error runt mac type",
    "Checksum": "total sum",
    "MssOption": "mss",
    "RollbackFifo": "full output",
    "BlockFifo": "w_rdy r_rdy r_data",
}


def free_parts(module, parts):
    """While this lasts, ``module`` makes parts that do anything; they are put into ``parts``."""

    def fill(m, name, part):
        for output in OUTPUTS[name].split():
            port = getattr(part, output)
            free(m, *((port.valid, port.payload) if output == "output" else (port,)))
        if name == "EthernetStrip":
            m.d.comb += part.i.ready.eq(1)

    return replaced(module, OUTPUTS, fill, parts)


def number(value):
    """Bytes of the network as a number."""
    return Cat(value.word_select(i, 8) for i in reversed(range(len(value) // 8)))


class Beat:
    """A beat of a datagram, told by the position ``at`` of its first byte."""

    def __init__(self, width, name):
        self.valid, self.first, self.final = (
            Signal(name=f"{name}_{k}") for k in ("valid", "first", "final")
        )
        self.at = Signal(20, name=f"{name}_at")
        self.data = Signal(width, name=f"{name}_data")
        self.keep = Signal(width // 8, name=f"{name}_keep")

    def after(self, m, name):
        """The same, a cycle later, held while there is none."""
        later = Beat(len(self.data), name)
        m.d.sync += [later.valid.eq(self.valid), later.final.eq(self.valid & self.final)]
        with m.If(self.valid):
            for field in ("first", "at", "data", "keep"):
                m.d.sync += getattr(later, field).eq(getattr(self, field))
        return later


class ParserProof(Elaboratable):
    def __init__(self, module, width):
        self.module = module
        self.width, self.n, self.lanes = width, width // 8, width // 32

    def elaborate(self, platform):
        m = new_harness()
        parts = {}
        with free_parts(self.module, parts):
            self.dut = self.module.Parser(self.width, buffer_bytes=64, segments=2)
            m.submodules.dut = Fragment.get(self.dut, platform)
        self.strip, self.option = parts["EthernetStrip"][0], parts["MssOption"][0]
        self.sums, self.fifo = parts["Checksum"], parts["RollbackFifo"][0]
        self.queue = parts["BlockFifo"][0]
        free(m, self.dut.frame.valid, self.dut.frame.payload)
        free(m, self.dut.segment.ready, self.dut.payload.ready)
        self._strip_rules(m)
        self._datagram(m)
        self._header(m)
        self._sums_given(m)
        self._options(m)
        self._written(m)
        self._verdict(m)
        self._outputs(m)
        return m

    def _strip_rules(self, m):
        """What the stripper keeps to."""
        s = self.strip
        inside, rest, named = Signal(), Signal(2), Signal(64)
        names = Cat(s.mac, s.type)
        m.d.sync += [rest.eq(Mux(rest == 0, 0, rest - 1)), named.eq(names)]
        with m.If(s.valid):
            m.d.sync += inside.eq(~s.last)
            m.d.comb += Assume(s.first == ~inside)
        with m.If(s.valid & s.last):
            m.d.sync += rest.eq(1)
        self.inside = inside
        m.d.comb += [
            Assume((rest == 0) | ~s.valid),
            Assume(~inside | (names == named)),
            Assume((s.bytes >= 1) & (s.bytes <= self.n)),
        ]

    def _datagram(self, m):
        """Stage b: the beats of the datagram, and what the frame's end says."""
        s, dut, n = self.strip, self.dut, self.n
        at, total, now_at, now_total = (Signal(20, name=k) for k in ("at", "total", "sa", "st"))
        m.d.comb += [
            now_at.eq(Mux(s.first, 0, Mux(at >= 1 << 18, at, at + n))),
            now_total.eq(Mux(s.first, number(s.data[16:32]), total)),
        ]
        with m.If(s.valid):
            m.d.sync += [at.eq(now_at), total.eq(now_total)]
        beat = Beat(self.width, "s")
        held = now_at + Mux(s.last, s.bytes, n)
        m.d.comb += [
            beat.valid.eq(s.valid & (s.first | (now_at < now_total))),
            beat.first.eq(s.first),
            beat.final.eq(~s.first & (now_at < now_total) & (now_total <= now_at + n)),
            beat.at.eq(now_at),
        ]
        for i in range(n):
            kept = s.first | (now_at + i < now_total)
            byte = Mux(kept, s.data.word_select(i, 8), 0)
            m.d.comb += [beat.keep[i].eq(kept), beat.data.word_select(i, 8).eq(byte)]
        self.b = beat.after(m, "gb")
        self.ends, self.short, self.error = Signal(), Signal(), Signal()
        m.d.sync += [
            self.ends.eq(s.valid & s.last),
            self.short.eq((held < 20) | (held < now_total)),
            self.error.eq(s.error),
        ]
        b, g = dut.b, self.b
        m.d.comb += [
            Assert(b.valid == g.valid),
            Assert(b.end == self.ends),
            Assert(~b.end | ((b.short == self.short) & (b.error == self.error))),
        ]
        with m.If(g.valid):
            m.d.comb += [
                Assert(b.first == g.first),
                Assert(b.final == g.final),
                Assert(b.data == g.data),
                Assert(b.keep == g.keep),
                Assert(~g.final | (self.total_of(b) == total)),
            ]
        with m.If(g.valid):
            m.d.comb += [
                Assert(g.at == at),
                Assert(g.first == (at == 0)),
                Assert(~g.final | ((at < total) & (total <= at + n))),
            ]
        self.at, self.total = at, total
        # Invariants: what is left of the datagram.
        over, begun, ihl, index = at + n >= total, Signal(), Signal(4), Signal(signed(20))
        with m.If(s.valid):
            m.d.sync += begun.eq(1)
            with m.If(s.first):
                m.d.sync += ihl.eq(s.data[:4])
        with m.If(g.valid & g.first):
            m.d.comb += [Assert(number(g.data[16:32]) == total), Assert(g.data[:4] == ihl)]
        self.ihl, self.begun = ihl, begun
        m.d.comb += [
            index.eq((at >> 2) - ihl),
            Assert(begun | ~self.inside),
            Assert(at[: n.bit_length() - 1] == 0),
        ]
        count, most = at // n + 1, 20 // n + 1
        with m.If(begun):
            m.d.comb += [
                Assert(dut.done == over),
                Assert(over | (dut.left == total - at - n - 1)),
                Assert(dut.beats == Mux(count > most, most, count)),
                Assert(Mux(index < 16, b.word == index, (b.word >= 16) & (b.word < 18))),
            ]
        with m.Else():
            m.d.comb += Assert(~g.valid & ~self.ends)

    def total_of(self, b):
        """The datagram's length by its last beat."""
        return self.b.at + b.top + 1

    def _header(self, m):
        """Stage b: the fields of the header, by the number of the word that they lie in."""
        g, f = self.b, self.dut.fields
        named = Cat(self.strip.mac, self.strip.type)
        h = self.h = {
            name: Signal(width, name=f"h_{name}")
            for name, width in (
                ("ihl", 4),
                ("total", 16),
                ("odd", 1),
                ("offset", 4),
                ("mac", 48),
                ("ip", 32),
                ("remote_port", 16),
                ("local_port", 16),
                ("seq", 32),
                ("ack", 32),
                ("flags", 8),
                ("window", 16),
            )
        }
        with m.If(g.valid):
            for lane in range(self.lanes):
                self._word(m, g, lane, h, named)
        m.d.comb += [
            Assert(f.ihl == h["ihl"]),
            Assert(f.total == h["total"]),
            Assert(f.bad == h["odd"]),
            Assert(f.offset == h["offset"]),
            *(Assert(Value.cast(f.segment[name]) == h[name]) for name in list(h)[4:]),
            Assert((g.valid & g.first) | (h["total"] == self.total)),
            Assert((g.valid & g.first) | (h["ihl"] == self.ihl)),
        ]

    def _word(self, m, g, lane, h, named):
        word, index = g.data.word_select(lane, 32), (g.at >> 2) + lane
        byte = [word.word_select(k, 8) for k in range(4)]
        if lane == 0:
            with m.If(g.first):
                wrong = (byte[0][4:] != 4) | (byte[0][:4] < 5) | (named[48:] != 0x0800)
                m.d.sync += [h["ihl"].eq(byte[0][:4]), h["total"].eq(number(word[16:]))]
                m.d.sync += [h["odd"].eq(wrong), h["offset"].eq(0)]
        with m.If((index == 1) & (number(word[16:]) & 0x3FFF != 0)):  # a fragment
            m.d.sync += h["odd"].eq(1)
        with m.If((index == 2) & (byte[1] != 6)):
            m.d.sync += h["odd"].eq(1)
        with m.If(index == 3):
            m.d.sync += [h["ip"].eq(number(word)), h["mac"].eq(named[:48])]
            with m.If((byte[0] == 0) | (byte[0] == 127) | (byte[0] >= 224)):  # RFC 1122, 3.2.1.3
                m.d.sync += h["odd"].eq(1)
        with m.If(index >= 4):
            with m.If(index == h["ihl"]):
                m.d.sync += h["remote_port"].eq(number(word[:16]))
                m.d.sync += h["local_port"].eq(number(word[16:]))
            with m.If(index == h["ihl"] + 1):
                m.d.sync += h["seq"].eq(number(word))
            with m.If(index == h["ihl"] + 2):
                m.d.sync += h["ack"].eq(number(word))
            with m.If(index == h["ihl"] + 3):
                m.d.sync += [h["offset"].eq(byte[0][4:]), h["flags"].eq(byte[1])]
                m.d.sync += h["window"].eq(number(word[16:]))

    def _sums_given(self, m):
        """Which half words count: the IP header's; the addresses' and all behind it."""
        g, h = self.b, self.h
        ip, tcp = self.sums
        for unit in self.sums:
            m.d.comb += [Assert(unit.en == g.valid), Assert(~g.valid | (unit.start == g.first))]
            m.d.comb += Assert(g.valid | ~unit.start)
            m.d.comb += Assert(~g.valid | (unit.data == g.data))
        ihl = Mux(g.first, g.data[:4], h["ihl"])
        with m.If(g.valid):
            for k in range(2 * self.lanes):
                at = g.at + 2 * k
                header = at < ihl << 2
                address = (at >= 12) & (at < 20)
                m.d.comb += Assert(ip.keep[k] == header)
                m.d.comb += Assert(tcp.keep[k] == (~header | address))

    def _options(self, m):
        """Each word of options once, as soon as the one behind it is known, if there is one."""
        g, h, option = self.b, self.h, self.option
        c = self.c = g.after(m, "gc")
        waits = Signal()
        m.d.comb += Assert(option.clear == (g.valid & g.first))
        known = g.valid | c.final
        m.d.sync += waits.eq((c.valid | waits) & ~known)
        for lane in range(self.lanes):
            index = (c.at >> 2) + lane - h["ihl"]
            inside = (c.at >> 2) + lane >= h["ihl"] + 5
            count = inside & ((c.at >> 2) + lane < h["ihl"] + h["offset"])
            more = (c.at >> 2) + lane + 1 < h["ihl"] + h["offset"]
            feeds = (c.valid | waits) & known & count
            with m.If(~option.clear):
                m.d.comb += Assert(option.en[lane] == feeds)
                with m.If(feeds):
                    word = option.data.word_select(lane, 32)
                    m.d.comb += Assert(option.more[lane] == more)
                    m.d.comb += Assert(word == c.data.word_select(lane, 32))
                    m.d.comb += Assert(~more | ~g.valid | (option.next == g.data[:32]))
            m.d.comb += Cover(feeds & (index == 5) & (h["offset"] == 6))
        # Invariants.
        beats, begun = c.at // self.n + 1, Signal()
        with m.If(g.valid):
            m.d.sync += begun.eq(1)
        with m.If(begun):
            for counter, most in ((self.dut.field_beat, 5), (self.dut.sum_beat, 4)):
                most = most // self.lanes + 1
                m.d.comb += Assert(counter == Mux(beats > most, most, beats))
        with m.Else():
            m.d.comb += Assert(~c.valid & ~waits)
        m.d.comb += Assert(self.dut.waiting == waits)
        m.d.comb += Assert(begun | ~self.begun | (g.valid & g.first))
        with m.If(g.valid & ~g.first):
            m.d.comb += Assert(c.at + self.n == g.at)
        with m.Elif(~g.valid & self.begun & ((self.at == 0) | (self.at < self.total))):
            m.d.comb += Assert(c.at == self.at)
        behind = Signal(signed(20))  # words from the TCP header on
        m.d.comb += behind.eq((c.at >> 2) - h["ihl"])
        with m.If(c.valid | waits):
            m.d.comb += [
                Assert(self.dut.c.data == c.data),
                Assert(Mux(behind < 16, self.dut.c.word == behind, self.dut.c.word >= 16)),
            ]

    def _written(self, m):
        """The payload: what lies behind the offset, in a datagram that may be TCP."""
        c, h, fifo = self.c, self.h, self.fifo
        begin, rest = Signal(20), Signal(20)  # of the payload; bytes from this beat on
        m.d.comb += [begin.eq((h["ihl"] + h["offset"]) << 2), rest.eq(h["total"] - c.at)]
        wanted = ~h["odd"] & (h["offset"] >= 5)
        # In beats of two words the payload may begin with the upper one.
        odd = begin[2] if self.lanes == 2 else 0
        high, held = Signal(32), Signal(32)
        with m.If(c.valid):
            m.d.sync += high.eq(c.data[-32:])
        ends = c.final & (rest <= self.n - (odd << 2))
        writes, spills, spilt, last = (Signal(name=k) for k in ("writes", "sps", "spt", "wl"))
        word, empty, few, fewer = Signal(self.width), Signal(4), Signal(4), Signal(4)
        m.d.sync += [
            writes.eq(c.valid & wanted & (c.at >= begin)),
            last.eq(ends),
            empty.eq(Mux(ends, self.n - (odd << 2) - rest, 0)),
            word.eq(Mux(odd, Cat(high, c.data[:32]), c.data)),
            spills.eq(c.final & ~ends & wanted & (c.at + self.n > begin)),
            spilt.eq(spills),
            few.eq(12 - rest),
            fewer.eq(few),
            held.eq(high),
        ]
        m.d.comb += [Assert(fifo.w_en == (writes | spilt)), Assert(~(writes & spilt))]
        with m.If(writes):
            m.d.comb += [
                Assert(fifo.w_data.data == word),
                Assert(fifo.w_data.last == last),
                Assert(fifo.w_data.empty == empty),
                Cover(last & (empty == 2)),
            ]
        with m.If(spilt):
            m.d.comb += [
                Assert(fifo.w_data.data[:32] == held),
                Assert(fifo.w_data.last),
                Assert(fifo.w_data.empty == fewer),
            ]
        if self.lanes == 2:
            m.d.comb += [Cover(spilt & (fewer == 5)), Assert(self.dut.upper == high)]

    def _verdict(self, m):
        """Three cycles after the frame's end was in stage b."""
        h, fifo, queue, dut = self.h, self.fifo, self.queue, self.dut
        judge, damaged = ([Signal(name=f"{k}{i}") for i in range(3)] for k in "jd")
        bad = Signal()
        tcp, length = Signal(signed(18)), Signal(signed(18))
        taken = {name: Signal.like(value, name=f"taken_{name}") for name, value in h.items()}
        m.d.comb += [
            tcp.eq(h["total"] - (h["ihl"] << 2)),
            length.eq(tcp - (h["offset"] << 2)),
        ]
        m.d.sync += [
            judge[0].eq(self.ends),
            damaged[0].eq(self.short | self.error),
            *(later.eq(now) for pair in (judge, damaged) for now, later in pairwise(pair)),
        ]
        lengths = Signal(16)
        with m.If(judge[0]):  # all of the frame has been read
            malformed = h["odd"] | (h["offset"] < 5) | (length < 0)
            m.d.sync += [bad.eq(malformed), lengths.eq(length)]
            m.d.sync += [taken[name].eq(value) for name, value in h.items()]
            swapped = number(tcp.as_unsigned()[:16])
            m.d.comb += Assert(damaged[0] | (self.sums[1].extra == swapped + 0x600))
        lost, full = Signal(), Signal()
        end = judge[2]
        m.d.comb += full.eq(lost | (fifo.w_en & fifo.full))
        m.d.sync += lost.eq(full & ~end)
        m.d.comb += Assert(dut.overflow == lost)
        wrong = {
            "errors": damaged[2],
            "malformed": bad,
            "ip_checksum": self.sums[0].total != 0xFFFF,
            "tcp_checksum": self.sums[1].total != 0xFFFF,
            "overflow": full | ~queue.w_rdy,
        }
        good, counts = end, {}
        for name, reason in wrong.items():
            counts[name], good = good & reason, good & ~reason
        counts["segments"] = good
        for name, event in counts.items():
            past, count = Signal(name=f"past_{name}"), Signal(32, name=f"count_{name}")
            m.d.sync += past.eq(event)
            m.d.sync += count.eq(count + past + (self.strip.runt if name == "errors" else 0))
            m.d.comb += Assert(getattr(dut.csr, name) == count)
            m.d.comb += Cover(event)
        m.d.comb += [
            Assert(fifo.commit == good),
            Assert(fifo.rollback == (end & ~good)),
            Assert(queue.w_en == good),
        ]
        with m.If(good):
            segment = RxSegmentLayout(queue.w_data)
            m.d.comb += [
                *(Assert(Value.cast(segment[k]) == v) for k, v in list(taken.items())[4:]),
                Assert(segment.length == lengths),
                Assert(segment.mss == self.option.mss),
                Cover((segment.length == 1) & (taken["ihl"] == 5) & (taken["offset"] == 6)),
            ]

    def _outputs(self, m):
        dut, fifo, queue = self.dut, self.fifo, self.queue
        stream_rules(m, fifo.output, Assume, "fifo")
        stream_rules(m, dut.segment, Assert, "segment")
        begins, moved, item = Signal(init=1), Signal(), Signal(len(queue.r_data))
        o, p = fifo.output, dut.payload
        with m.If(p.valid & p.ready):
            m.d.sync += begins.eq(p.payload.last)
        m.d.sync += [moved.eq(queue.r_en & queue.r_rdy), item.eq(queue.r_data)]
        m.d.comb += [
            Assert((p.valid == o.valid) & (p.ready == o.ready)),
            Assert(p.payload.data == o.payload.data),
            Assert((p.payload.empty == o.payload.empty) & (p.payload.last == o.payload.last)),
            Assert((p.payload.first == begins) & ~p.payload.error),
            Assert(queue.r_en == (~dut.segment.valid | dut.segment.ready)),
        ]
        with m.If(moved):
            m.d.comb += Assert(dut.segment.valid & (dut.segment.payload.as_value() == item))


PARSER_MUTANTS = (
    Mutant("fragments_pass", "Cat(word[16:22], word[24:])", "Cat(word[16:21], word[24:])"),
    Mutant("hears_groups", "(word[5:8] == 7) | (word[:8] == 0)", "word[:8] == 0"),
    Mutant("no_ip_options", "(word[:4] < 5)", "(word[:4] <= 5)"),
    Mutant("counts_padding", "~strip.first & (left[bits:] == 0)", "(left[bits:] == 0)"),
    Mutant("keeps_the_damaged", "broken.eq(c.error | c.short)", "broken.eq(c.short)"),
)

PROOFS = tuple(
    Proof(
        name=f"tcp_parser_{width}",
        core=f"cores.tcp.parser.Parser({width}) between free parts",
        says="a segment is what its frame says, and handed on only if nothing is wrong with it",
        module="trebuchet.cores.tcp.parser",
        build=lambda cores, w=width: ParserProof(cores, w),
        depth=6,
        cover_depth=18,
        mutants=PARSER_MUTANTS if width == 32 else PARSER_MUTANTS[:3],
        assumes="the contracts of the parts: stripper, checksums, options, buffer, queue",
    )
    for width in (32, 64)
)
