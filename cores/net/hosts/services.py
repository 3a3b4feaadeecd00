"""The services of an Internet host that need no software: ARP, ICMP echo, UDP echo and discard.

Sources: RFC 826 (ARP); RFC 1122, 3.2.1 and 3.2.2 (what a host must check, and whom it must not
answer); RFC 791; RFC 792 (echo); RFC 1624 (checksums updated); RFC 862 and 863 (UDP services).
"""

from functools import reduce
from operator import or_

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...buffers import PacketFifo
from ...csr import CsrSignature
from ...stream import PacketSignature
from ..octets import byteswap
from .checks import GROUPS, UDP_GROUPS, gather
from .payload import PayloadSum, add_word, is_right, sum_of_lanes
from .registers import DISCARD_BLOCK, ECHO_BLOCK
from .rewrite import ANY, ARP, ICMP, IP, LOOK_AHEAD, REWRITES, TTL, UDP

__all__ = ["SHORTEST", "HostServices"]

#: Bytes of the shortest frame on the line, but for those of a tag that came off.
SHORTEST = 56
#: A frame with this byte is long enough, by bytes of a beat: at 64 bits the sum of the IPv4 header
#: is known three beats behind it.
_WHOLE = {4: SHORTEST - 1, 8: SHORTEST}
#: Byte of a frame behind which come those that IPv4's total length counts.
_ETHERNET = 14


class HostServices(wiring.Component):
    """Answers ARP requests and echo requests by turning each frame round in place.

    ===========  ====  =============  ==========================================================
    member       dir   width          meaning
    ===========  ====  =============  ==========================================================
    ``i``        In    packet stream  good frames of 56 to 1,514 bytes, no FCS; ``ready`` is
                                      always 1
    ``o``        Out   packet stream  answers; ``error`` is 0
    ``mac``      In    48             our MAC address, its first byte in bits 7..0
    ``ip``       In    32             our IPv4 address as a number
    ``echo``     In    CsrSignature   counters, :data:`ECHO_BLOCK`; only with ``udp``
    ``discard``  In    CsrSignature   counters, :data:`DISCARD_BLOCK`; only with ``udp``
    ===========  ====  =============  ==========================================================

    Answered are, with a unicast source MAC address, and nothing else is:

    - *ARP*: requests for ``ip`` (Ethernet and IPv4), to ``mac`` or to all. The reply goes to the
      station that the frame came from, and names the request's sender.
    - *IPv4*: datagrams to ``mac`` and ``ip`` with a header of 20 bytes and the right checksum, no
      fragments, whose total length is at least 28 bytes and within the frame; from a source that
      can be a host: not 0/8, 127/8, 224/3 (multicast, reserved, broadcast), nor ``ip`` itself.

      - *ICMP*: echo requests, code 0, with the right checksum.
      - *UDP* to port 7 whose length is that of the IP header, with the right checksum or none,
        from ports above 1023: echoing to another service of that kind would go round for ever.

    An answer has the request's bytes, and as many, but for: addresses and ports, which change
    places; TTL, 64; ARP's operation; ICMP's type; IP's and ICMP's checksums, which are updated by
    the difference. UDP's checksum does not change by the swap. Frames with a VLAN tag are not
    answered, nor anything while ``ip`` is in 0/8, as before there is an address. ``mac`` and ``ip``
    may change at any time; a frame under way then has either.

    UDP counters count datagrams to ``mac`` and ``ip`` with a good IP header. ``errors`` are those
    that are not as long as they say, have a wrong checksum, or are, of echo, from the ports named.
    ``overflow``: no room while earlier answers wait. ``overlong`` stays 0: no frame is as long.

    *Back-pressure*: none on ``i``; an answer for which the store (2 KiB) has no room is dropped,
    so that neither ARP nor discard ever waits for a peer that sends more than the line takes back.
    *Throughput*: one beat a cycle. *Latency*: eight cycles from a frame's last beat to the first
    of its answer. *Bad input*: frames that end before the beat with byte 55, at
    64 bits byte 56, and those with ``error`` are dropped. Reset: empty, counters 0.

    Parameters
    ----------
    width : int
        Data path, 32 or 64 bits.
    udp : bool
        With the UDP services; without, UDP is not answered.
    depth : int
        Beats of the store, by default 2 KiB; a proof is quicker with fewer.
    """

    def __init__(self, width=32, udp=True, depth=None):
        if width not in (32, 64):
            raise ValueError(f"HostServices data path width must be 32 or 64 bits, not {width!r}")
        self.width, self.n, self.udp = width, width // 8, bool(udp)
        self.depth = 2048 // self.n if depth is None else depth
        ports = {
            "i": In(PacketSignature(width)),
            "o": Out(PacketSignature(width)),
            "mac": In(48),
            "ip": In(32),
        }
        if self.udp:
            ports["echo"] = In(CsrSignature(ECHO_BLOCK))
            ports["discard"] = In(CsrSignature(DISCARD_BLOCK))
        super().__init__(ports)
        n = self.n
        beat = data.StructLayout({"data": width, "empty": range(n), "last": 1})
        self.s1, self.s2 = Signal(beat), Signal(beat)
        self.s1_valid, self.s2_valid = Signal(), Signal()
        self.s3, self.s4 = Signal(width), Signal(width)
        self.late = Signal(data.StructLayout({**beat.members, "first": 1, "keep": 1, "summed": 1}))
        self.late_valid = Signal()
        self.step = Signal()
        # Which beat of the frame is on `i`, if any is, and which in s1; a bit each.
        self.at = Signal(_WHOLE[n] // n + 1, init=1)
        self.at1 = Signal(_WHOLE[n] // n + 1)
        self.is_arp, self.is_udp = Signal(), Signal()
        self.groups = GROUPS + (UDP_GROUPS if self.udp else ())
        self.missed = {group: Signal(name=f"missed_{group}") for group in self.groups}
        self.end = Signal(17)  # offset of the last byte by IPv4's total length
        self.count = Signal(range(2048 // n))  # which beat of the frame is on `i`
        self.payload = PayloadSum(width, len(self.at))

    # A line of stages that moves with each beat, and between frames without one, so that a frame
    # is never torn in it: `i`, s1, s2, then the store. What is on `i` is compared with what is
    # wanted beside s1, and the results are gathered beside s2. What a beat becomes is selected at
    # s1, and only the destination, which comes up to two beats later, at s2. s2 to s4 hold the
    # request as it was. When a frame's last beat leaves s2, it is known whether the store is to
    # keep it by its headers; a stage more, and its payload's sum is known.
    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = PacketFifo(self.width, self.depth)
        wiring.connect(m, store.o, wiring.flipped(self.o))
        self._stages(m)
        octets = self._rewrite(m)
        self._sum(m)
        keep, summed = self._judge(m, store)
        begins, kept, s2 = Signal(init=1), store.i, self.s2
        late, moved = self.late, self.step & self.s2_valid
        m.d.sync += [self.late_valid.eq(moved), kept.valid.eq(self.late_valid)]
        with m.If(moved):
            m.d.sync += [
                late.data.eq(octets),
                late.empty.eq(s2.empty),
                late.first.eq(begins),
                late.last.eq(s2.last),
                late.keep.eq(keep),
                late.summed.eq(summed),
                begins.eq(s2.last),
            ]
        good = late.keep & (self.payload.right | ~late.summed)
        m.d.sync += [
            kept.p.data.eq(late.data),
            kept.p.empty.eq(late.empty),
            kept.p.first.eq(late.first),
            kept.p.last.eq(late.last),
            kept.p.error.eq(late.last & ~good),
        ]
        return m

    def _sum(self, m):
        m.submodules.payload = payload = self.payload
        m.d.comb += [
            payload.valid.eq(self.i.valid),
            payload.data.eq(self.i.p.data),
            payload.last.eq(self.i.p.last),
            payload.at.eq(self.at),
            payload.count.eq(self.count),
            payload.end.eq(self.end),
            payload.udp.eq(self.is_udp),
        ]

    def _stages(self, m):
        i, at = self.i, self.at
        m.d.comb += [i.ready.eq(1), self.step.eq(i.valid | at[0])]
        with m.If(i.valid):
            m.d.sync += at.eq(Mux(i.p.last, 1, at << 1))
        with m.If(self.step):
            m.d.sync += [
                self.at1.eq(at & i.valid.replicate(len(at))),
                self.s1_valid.eq(i.valid),
                self.s1.data.eq(i.p.data),
                self.s1.empty.eq(i.p.empty),
                self.s1.last.eq(i.p.last),
                self.s2_valid.eq(self.s1_valid),
                self.s2.eq(self.s1),
                self.s3.eq(self.s2.data),
                self.s4.eq(self.s3),
            ]
        for place, flag, test in (
            (12, self.is_arp, lambda half: half[8:] == 0x06),
            (22, self.is_udp, lambda half: half[8:] == 17),
        ):
            with m.If(i.valid & self._on_i(place)):
                m.d.sync += flag.eq(test(self._half(i.p.data, place)))

    def _on_i(self, offset):
        return self.at[offset // self.n]

    def _half(self, word, offset):
        lane = offset % self.n
        return word[8 * lane : 8 * lane + 16]

    def met(self, name, lane):
        """The register of a comparison of :mod:`.checks`."""
        return Signal(name=f"met_{name}_{lane}")

    # --- the answer

    def _words(self, m):
        """What an answer has that its request has not, while the beat that it is for is in s1."""
        ours = byteswap(self.ip)
        return {
            **{f"mac{k}": self.mac[16 * k : 16 * k + 16] for k in range(3)},
            **{f"ip{k}": ours[16 * k : 16 * k + 16] for k in range(2)},
            "checksum": self._checksum(m),
        }

    def _checksum(self, m):
        """A checksum with the difference that the answer makes: ~(~HC + ~m + m'), RFC 1624.

        In the order of bytes of a beat ``~m + m'`` is 64 - TTL in the IPv4 header, where zero and
        less have one less for the carry that comes round, and -8 in ICMP, whose type becomes 0.
        """
        data = self.i.p.data
        less, total = Signal(9), Signal(17)
        old = self._half(data, 24)
        if self._half(data, 36) is not old:
            old = Mux(self._on_i(36), self._half(data, 36), old)
        change = Cat(less, less[8].replicate(7))
        time = self._half(data, 22)[:8]
        with m.If(self.step):
            m.d.sync += [
                less.eq(Mux(self._on_i(22), TTL - 1 - time, -9)),
                total.eq((Cat(1, ~old) + Cat(~less[8], change))[1:]),
            ]
        return ~(total[:16] + total[16])[:16]

    def _rewrite(self, m):
        """The beat that is in s2, as the answer has it."""
        words = self._words(m)
        return Cat(*(self._octet(m, lane, words) for lane in range(self.n)))

    # What a byte may become is gated and put together in two registers: so the last step, which
    # must wait for the beats that come later, takes them all in one LUT.
    def _octet(self, m, lane, words):
        gated, set_bits = self._sources(m, lane, words)
        parts = [Signal(8, name=f"part_{lane}_{k}") for k in range(2)]
        for part, values in zip(parts, (gated[:2] + [set_bits], gated[2:]), strict=True):
            with m.If(self.step):
                m.d.sync += part.eq(reduce(or_, values, 0))
        ahead, source = self._look_ahead(m, lane)
        return Mux(ahead, source, parts[0] | parts[1])

    def _sources(self, m, lane, words):
        """Of a byte of the beat in s1: its possible values, 0 unless chosen, and constants."""
        history = (self.s1.data, self.s2.data, self.s3, self.s4)
        moved, ones, chosen = {}, [[] for _ in range(8)], []
        for (protocol, place), source in REWRITES.items():
            if place % self.n != lane - lane % 2 or (protocol == UDP and not self.udp):
                continue
            when = self._on_i(place) & self._holds(protocol)
            low = 8 * (lane % 2)
            if isinstance(source, tuple):
                value = source[lane % 2]
                if value is None:
                    continue
                for k in range(8):
                    ones[k] += [when] if value >> k & 1 else []
            elif isinstance(source, str):
                moved.setdefault(source, (words[source][low : low + 8], []))[1].append(when)
            else:
                back = place // self.n - source // self.n
                value = self._half(history[back], source)[low : low + 8]
                moved.setdefault((back, source % self.n), (value, []))[1].append(when)
            chosen.append(when)
        own = self._when(m, f"own_{lane}", ~Cat(*chosen).any())
        gated = [self.s1.data.word_select(lane, 8) & own.replicate(8)]
        for k, (value, conditions) in enumerate(moved.values()):
            now = self._when(m, f"takes_{lane}_{k}", Cat(*conditions).any())
            gated.append(value & now.replicate(8))
        set_bits = [self._when(m, f"sets_{lane}_{k}", Cat(*c).any()) for k, c in enumerate(ones)]
        return gated, Cat(*set_bits)

    def _holds(self, protocol):
        return {
            ANY: 1,
            ARP: self.is_arp,
            IP: ~self.is_arp,
            ICMP: ~self.is_arp & ~self.is_udp,
            UDP: ~self.is_arp & self.is_udp,
        }[protocol]

    def _when(self, m, name, condition):
        """What holds for the beat on `i`, one step later."""
        register = Signal(name=name)
        with m.If(self.step):
            m.d.sync += register.eq(condition)
        return register

    def _look_ahead(self, m, lane):
        """Whether a byte in s2 becomes one that comes later, and that."""
        line, use, source = (self.s2.data, self.s1.data, self.i.p.data), [], C(0, 8)
        for place, there in LOOK_AHEAD.items():
            if place % self.n == lane - lane % 2:
                half = self._half(line[there // self.n - place // self.n], there)
                source = half.word_select(lane % 2, 8)
                use.append(self.at1[place // self.n])
        return self._when(m, f"ahead_{lane}", Cat(*use).any()), source

    # --- whether there is one

    def _judge(self, m, store):
        """Whether the frame whose last beat is in s2 is to be answered, and has a payload's sum.

        Counts datagrams.
        """
        missed = gather(m, self, self.groups)
        right, complete = self._header_sum(m), self._complete(m)
        whole, ip, arp = Signal(), Signal(), Signal()
        with m.If(self.step):
            m.d.sync += [
                whole.eq((self.at[-1] | (whole & ~self.at[0])) & ~self.i.p.error),
                arp.eq(~(missed["arp"] | missed["any"] | (missed["mine"] & missed["all"]))),
                ip.eq(right & missed["myself"] & ~(missed["mine"] | missed["any"] | missed["ip"])),
            ]
        keep, summed = Signal(), Signal()
        icmp = ip & ~missed["icmp"] & complete
        echo = self._count(m, store, whole & ip, complete, missed) if self.udp else 0
        with m.If(self.step):
            m.d.sync += [keep.eq(whole & (arp | icmp | echo)), summed.eq(~arp)]
        return keep, summed

    def _header_sum(self, m):
        """Whether the IPv4 header's words add up to ones; known two steps behind the last one."""
        sums = [Signal(17, name=f"sum_{lane}") for lane in range(0, self.n, 2)]
        data = self.i.p.data
        for k, total in enumerate(sums):
            word = self._half(data, 2 * k)
            beats = {place // self.n for place in range(14, 34, 2) if place % self.n == 2 * k}
            with m.If(self.at[0]):
                m.d.sync += total.eq(0)
            with m.Elif(self.i.valid & Cat(self.at[beat] for beat in beats).any()):
                m.d.sync += total.eq(add_word(total, word))
        whole, right = Signal(20), Signal()
        with m.If(self.step):
            m.d.sync += [
                whole.eq(sum_of_lanes(sums)),
                right.eq(is_right(whole, len(sums))),
            ]
        return right

    def _complete(self, m):
        """Whether the frame has the bytes of the IPv4 datagram, while its last beat is in s1."""
        i, n, end = self.i, self.n, self.end
        count = self.count
        here, fits, past = Signal(), Signal(), Signal()
        low = (n - 1).bit_length()
        with m.If(i.valid):
            m.d.sync += count.eq(Mux(i.p.last, 0, count + 1))
            with m.If(self._on_i(16)):
                m.d.sync += end.eq(byteswap(self._half(i.p.data, 16)) + (_ETHERNET - 1))
        with m.If(self.step):
            m.d.sync += [
                here.eq(count == end[low:]),
                fits.eq(end[:low] + i.p.empty < n),
                # Before, `end` may be that of another frame.
                past.eq((past | here) & ~self.at1[32 // n]),
            ]
        return past | (here & fits)

    def _count(self, m, store, ip, complete, missed):
        """Judge and count datagrams for the UDP services; return whether there is an echo."""
        length = Signal(16)
        wrong = Signal()
        # UDP's length is the total length without the IPv4 header.
        header = _ETHERNET + 20 - 1
        with m.If(self.step):
            m.d.sync += [
                length.eq(byteswap(self._half(self.i.p.data, 38)) - self.end[:16]),
                wrong.eq(Mux(self.at1[38 // self.n], length != (-header) & 0xFFFF, wrong)),
            ]
        udp = ip & ~missed["udp"]
        bad = wrong | ~complete
        echo, discard = udp & ~missed["echo"], udp & ~missed["discard"]
        refused = bad | missed["echo_source"]
        verdicts = {
            "echo": echo & ~refused,
            "echo_errors": echo & refused,
            "discard": discard & ~bad,
            "discard_errors": discard & bad,
        }
        octets = Signal(16)
        ended = self.step & self.s2_valid & self.s2.last
        pulses = {}
        for name, verdict in verdicts.items():
            held, pulse = Signal(name=f"{name}_held"), Signal(name=f"{name}_pulse")
            with m.If(self.step):
                m.d.sync += held.eq(verdict)
            m.d.sync += pulse.eq(ended & held)
            pulses[name] = pulse
        with m.If(self.step):
            m.d.sync += octets.eq(self.end[:16] - (header + 8))
        right = self.payload.right
        errors = {n: pulses[f"{n}_errors"] | (pulses[n] & ~right) for n in ("echo", "discard")}
        discarded, stored = pulses["discard"] & right, Signal(2)
        m.d.sync += stored.eq(Cat(pulses["echo"] & right, stored))
        for register, when, more in (
            (self.echo.datagrams, stored[1] & ~store.dropped_overflow, 1),
            (self.echo.errors, errors["echo"], 1),
            (self.echo.overflow, stored[1] & store.dropped_overflow, 1),
            (self.discard.datagrams, discarded, 1),
            (self.discard.octets, discarded, octets),
            (self.discard.errors, errors["discard"], 1),
        ):
            with m.If(when):
                m.d.sync += register.eq(register + more)
        return verdicts["echo"]
