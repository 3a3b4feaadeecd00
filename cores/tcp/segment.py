"""TCP segments as the receive parser hands them to the engines and the engines to the sender.

The packet formats live in ``cores/tcp/parser.py`` and ``cores/tcp/sender.py`` only; the engines
between see the layouts below, with all numbers in host order (network order ends at the parser).
"""

from amaranth import unsigned
from amaranth.lib import data

from ..memory import ADDR_WIDTH
from .service import SESSION_WIDTH

__all__ = ["FLAGS", "RxSegmentLayout", "TxSegmentLayout"]

#: The TCP control bits (RFC 9293, 3.1), in wire order: FIN is bit 0.
FLAGS = data.StructLayout(
    {"fin": 1, "syn": 1, "rst": 1, "psh": 1, "ack": 1, "urg": 1, "ece": 1, "cwr": 1}
)

#: A received segment. The parser offers it only after both checksums were right and the whole
#: payload is buffered behind it; ``length`` > 0 means that a payload packet of that many bytes
#: follows on the payload stream, first byte in bits 7..0. Options other than MSS are skipped.
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
