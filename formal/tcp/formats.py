"""Proofs of what the TCP engine's parts agree on: layouts, numbers, sizes.

Combinational, and the same in every cycle; what is fixed by a standard is compared with it, sizes
with numbers worked out by hand from the data sheets. A word goes through a register first, so that
a witness shows every bit of it moving.

*Segment*: the control bits are in the order of RFC 9293, 3.1; a segment's fields are as wide as the
header's and lie apart from each other. *Service*: events have the numbers that services know,
positions are as wide as sequence numbers, tags and lengths as the data sheet says. *Config*: sizes
that follow from a configuration, of five configurations.

Not proved: that anything uses them rightly.
"""

from amaranth.hdl import Assert, Cat, Const, Cover, Elaboratable, Signal, Value
from amaranth.lib import data

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]

FLAGS = ("fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr")
HEADER = {
    **{"mac": 48, "ip": 32, "remote_port": 16, "local_port": 16, "seq": 32, "ack": 32},
    **{"flags": 8, "window": 16, "mss": 16, "length": 16},
}
SENT = {**HEADER, "session": 17, "addr": 32}
EVENT = {"kind": 3, "session": 17, "ok": 1, "tag": 8, "base": 32, "position": 32}
TX = {"session": 17, "addr": 32, "length": 20, "push": 1, "close": 1, "abort": 1, "tag": 8}
FREE = {"session": 17, "position": 32, "release": 1}
KINDS = {"OPEN": 0, "DATA": 1, "EOF": 2, "SENT": 3, "CLOSED": 4}


class _Formats(Elaboratable):
    def __init__(self, part):
        self.part = part

    def elaborate(self, platform):
        m = new_harness()
        self.spec(m)
        return m

    def word(self, m, layout):
        """Anything, in this layout; it begins with 0."""
        now, word = Signal(layout), Signal(layout)
        free(m, now)
        m.d.sync += word.eq(now)
        return word

    def fields(self, m, layout, widths):
        """The fields have these widths and share no bit: together they are all of the word."""
        word = self.word(m, layout)
        raw = Value.cast(word)
        m.d.comb += Assert(Const(set(layout.members) == set(widths)))
        m.d.comb += Assert(Const(len(raw) == sum(widths.values())))
        for name, width in widths.items():
            m.d.comb += Assert(Const(len(Value.cast(word[name])) == width))
        parts = Cat(Value.cast(word[name]) for name in layout.members)
        m.d.comb += [Assert(parts == raw), Cover(raw.all())]


class SegmentProof(_Formats):
    def spec(self, m):
        part = self.part
        self.fields(m, part.RxSegmentLayout, HEADER)
        self.fields(m, part.TxSegmentLayout, SENT)
        word = self.word(m, 8)
        flags = data.View(part.FLAGS, word)
        for bit, name in enumerate(FLAGS):
            m.d.comb += Assert(flags[name] == word[bit])
        m.d.comb += Cover(flags.syn & flags.ack & (word == 0x12))


class ServiceProof(_Formats):
    def spec(self, m):
        part = self.part
        self.fields(m, part.EventLayout, EVENT)
        self.fields(m, part.TxLayout, TX)
        self.fields(m, part.FreeLayout, FREE)
        event = self.word(m, part.EventLayout)
        for name, number in KINDS.items():
            is_one = event.kind == part.EventKind[name]
            m.d.comb += Assert(is_one == (Value.cast(event.kind) == number))
        m.d.comb += Assert(Const(part.TX_PER_SESSION) == 4)


#: Parameters, and what follows from them by the data sheet.
SIZES = (
    (
        {},
        {
            **{"session_bits": 6, "pool_segments": 64, "half_open_limit": 39, "payload_bits": 13},
            **{"segment_bits": 6, "segment_size": 32768, "pool_size": 2 << 20, "window": 32768},
            **{"sliding": 0, "unread": 32768 - 1460, "update": 1460},
        },
    ),
    (
        {"sessions": 2, "segment_log2": 17, "half_open": 1, "rx_buffer": 2048},
        {
            **{"session_bits": 1, "pool_segments": 2, "half_open_limit": 1, "payload_bits": 12},
            **{"segment_bits": 1, "segment_size": 131072, "pool_size": 262144, "window": 65535},
            **{"sliding": 1, "unread": 131072, "update": 1460},
        },
    ),
    (
        {"sessions": 8, "segments": 5, "segment_log2": 11, "max_window": 1024},
        {
            **{"session_bits": 3, "pool_segments": 5, "half_open_limit": 6, "segment_bits": 3},
            **{"segment_size": 2048, "pool_size": 10240, "window": 1024, "sliding": 1},
            **{"unread": 2048, "update": 512},
        },
    ),
    (
        {"sessions": 4, "segments": 1, "segment_log2": 16, "max_window": 65535, "mss": 536},
        {"segment_bits": 1, "window": 65535, "sliding": 1, "update": 536, "half_open_limit": 3},
    ),
    (
        {"sessions": 4, "segment_log2": 9, "half_open": 4},
        {"window": 512, "sliding": 0, "update": 256, "unread": 256, "half_open_limit": 4},
    ),
)


class ConfigProof(_Formats):
    def spec(self, m):
        at = self.word(m, range(len(SIZES)))
        for k, (parameters, sizes) in enumerate(SIZES):
            config = self.part.TcpConfig(**parameters)
            with m.If(at == k):
                for name, size in sizes.items():
                    is_size = Const(int(getattr(config, name)), 32) == size
                    m.d.comb += Assert(is_size)
                m.d.comb += Cover(Const(1))


_PACKAGE = "trebuchet.cores.tcp"

PROOFS = (
    Proof(
        name="tcp_segment_format",
        core="cores.tcp.segment",
        says="the control bits lie as in RFC 9293; fields are as wide as the header's",
        module=f"{_PACKAGE}.segment",
        build=lambda part: SegmentProof(part),
        depth=2,
        cover_depth=4,
        mutants=(
            Mutant("psh_and_ack_swapped", '"psh": 1, "ack": 1', '"ack": 1, "psh": 1'),
            Mutant(
                "short_sequence",
                '"mss": unsigned(16), "length": unsigned(16)',
                '"mss": unsigned(15), "length": unsigned(16)',
            ),
        ),
        assumes="nothing",
    ),
    Proof(
        name="tcp_service_format",
        core="cores.tcp.service",
        says="events have their numbers; positions, lengths and tags their widths",
        module=f"{_PACKAGE}.service",
        build=lambda part: ServiceProof(part),
        depth=2,
        cover_depth=4,
        mutants=(
            Mutant("short_positions", "POSITION_WIDTH = 32", "POSITION_WIDTH = 31"),
            Mutant("event_renumbered", "SENT = 3", "SENT = 5"),
            Mutant("one_more_descriptor", "TX_PER_SESSION = 4", "TX_PER_SESSION = 5"),
        ),
        assumes="nothing",
    ),
    Proof(
        name="tcp_config_sizes",
        core="cores.tcp.config.TcpConfig",
        says="sizes of sessions, pool, window and its updates are those of the data sheet",
        module=f"{_PACKAGE}.config",
        build=lambda part: ConfigProof(part),
        depth=2,
        cover_depth=4,
        mutants=(
            Mutant(
                "window_too_large", "min(self.segment_size, self.max_window)", "self.segment_size"
            ),
            Mutant(
                "slides_at_equal",
                "self.segment_size > self.window",
                "self.segment_size >= self.window",
            ),
            Mutant(
                "number_too_short", "self.rx_buffer.bit_length()", "self.rx_buffer.bit_length() - 1"
            ),
        ),
        assumes="nothing",
    ),
)
