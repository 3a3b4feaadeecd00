"""TCP segments as the receive parser hands them to the engines and the engines to the sender.

The packet formats live in ``cores/tcp/parser.py`` and ``cores/tcp/sender.py`` only; the engines
between see the layouts below, with all numbers in host order (network order ends at the parser).
"""

from amaranth import unsigned
from amaranth.lib import data

from ..memory import ADDR_WIDTH
from ..net.vlan import VLAN_WIDTH
from .service import SESSION_WIDTH

__all__ = ["FLAGS", "RxSegmentLayout", "TxSegmentLayout", "rx_segment_layout", "tx_segment_layout"]
__all__ += ["drop", "reset", "verdict_layout"]

#: The TCP control bits (RFC 9293, 3.1), in wire order: FIN is bit 0.
FLAGS = data.StructLayout(
    {"fin": 1, "syn": 1, "rst": 1, "psh": 1, "ack": 1, "urg": 1, "ece": 1, "cwr": 1}
)

#: A received segment. The parser offers it only after both checksums were right and the whole
#: payload is buffered behind it; ``length`` > 0 means that a payload packet of that many bytes
#: follows on the payload stream, first byte in bits 7..0. Other options than MSS are skipped.
RxSegmentLayout = data.StructLayout(
    {
        "mac": unsigned(48),  # peer's MAC, first byte on the wire in bits 7..0
        "ip": unsigned(32),  # peer's IPv4 address
        "remote_port": unsigned(16),
        "local_port": unsigned(16),
        "seq": unsigned(32),
        "ack": unsigned(32),
        "flags": FLAGS,
        "window": unsigned(16),
        "mss": unsigned(16),  # MSS option, 0 if there was none
        "length": unsigned(16),  # payload bytes
    }
)

#: A segment to send. The sender reads ``length`` bytes at ``addr`` through its memory port, builds
#: the frame, and reports ``session`` on ``sent`` when it will not read the memory again for it.
TxSegmentLayout = data.StructLayout(
    {
        "session": unsigned(SESSION_WIDTH),
        "mac": unsigned(48),
        "ip": unsigned(32),
        "remote_port": unsigned(16),
        "local_port": unsigned(16),
        "seq": unsigned(32),
        "ack": unsigned(32),
        "flags": FLAGS,
        "window": unsigned(16),
        "mss": unsigned(16),  # MSS option to send (SYN only), 0 for none
        "addr": unsigned(ADDR_WIDTH),
        "length": unsigned(16),
    }
)


def rx_segment_layout(config=None):
    """A received segment, with the options that ``config`` has the engine look at."""
    more = {}
    if config is not None and config.scaling:
        # The window scale option (RFC 7323, 2.2): whether there was one; its shift, at most 14.
        more |= {"scaled": 1, "scale": 4}
    if config is not None and config.sack:
        more |= {"permits": 1}  # the option SACK-permitted (RFC 2018, 2)
    if config is not None and config.vlan:
        more |= {"vlan": VLAN_WIDTH}  # of the frame it came in
    return _with(RxSegmentLayout, more)


def tx_segment_layout(config=None):
    """A segment to send, with the options that ``config`` has the engine send."""
    more = {}
    if config is not None and config.scaling:
        more |= {"scaled": 1}  # with ``mss``: a window scale option of ``config.shift``
    if config is not None and config.sack:
        # With ``mss``: the option SACK-permitted. Without it and text: how many of ``places`` a
        # SACK option is to tell, pairs of the low bits of edges, the first pair at the bottom.
        more |= {"permits": 1, "blocks": config.runs.bit_length()}
        more |= {"places": 2 * config.runs * config.place_bits}
    if config is not None and config.vlan:
        more |= {"vlan": VLAN_WIDTH}  # of the frame it goes out in
    return _with(TxSegmentLayout, more)


def verdict_layout(config):
    """What happens to one payload (and FIN): see :class:`~trebuchet.cores.tcp.dma.ReceiveDma`."""
    return data.StructLayout(
        {
            "session": config.session_bits,
            "addr": ADDR_WIDTH,  # of the first byte written
            "arrived": config.payload_bits,  # bytes of the payload on the stream
            "skip": config.payload_bits,  # of these, to leave out at the front
            "length": config.payload_bits,  # to write, after that; the rest is dropped
            "fin": 1,
            "end": 32,  # rcv_pub once it is written
            "commit": 1,  # 0: nothing to publish
            "ahead": 1,  # written beyond a gap: nothing to publish yet
        }
    )


def drop(m, verdict, segment):
    """Make register ``verdict``, of verdict_layout, the one that drops ``segment``'s payload."""
    m.d.sync += [verdict.commit.eq(0), verdict.length.eq(0), verdict.skip.eq(0)]
    m.d.sync += [verdict.arrived.eq(segment.length), verdict.fin.eq(0), verdict.ahead.eq(0)]


def reset(m, o, segment):
    """Make register ``o`` the RST that answers ``segment``, of no session (RFC 9293, 3.5.2)."""
    m.d.sync += [
        o.eq(0),
        o.session.eq((1 << SESSION_WIDTH) - 1),
        o.mac.eq(segment.mac),
        o.ip.eq(segment.ip),
        o.remote_port.eq(segment.remote_port),
        o.local_port.eq(segment.local_port),
        o.flags.rst.eq(1),
    ]
    if "vlan" in o.shape().members:
        m.d.sync += o.vlan.eq(segment.vlan)
    with m.If(segment.flags.ack):
        m.d.sync += o.seq.eq(segment.ack)
    with m.Else():
        behind = segment.seq + segment.length + segment.flags.syn + segment.flags.fin
        m.d.sync += [o.ack.eq(behind), o.flags.ack.eq(1)]


def _with(layout, more):
    """``layout`` itself, or a layout with more fields behind its own."""
    if not more:
        return layout
    more = {name: unsigned(width) for name, width in more.items()}
    return data.StructLayout(dict(layout.members) | more)
