"""How a request becomes its answer: which two bytes of the frame come from where.

All offsets are of the first of two bytes in a frame without a VLAN tag.

Sources: RFC 826 (ARP), RFC 791, 3.1 (IPv4 header), RFC 792 (echo), RFC 768 (UDP).
"""

from amaranth.hdl import Cat

__all__ = ["ANY", "ARP", "ICMP", "IP", "LOOK_AHEAD", "PATCHES", "REWRITES", "TTL", "UDP", "select"]

#: What a rewrite holds for: every frame, or those of one protocol; IP is ICMP and UDP.
ANY, ARP, IP, ICMP, UDP = "any", "arp", "ip", "icmp", "udp"

#: Time to live of what we send (RFC 1700, "IP time to live parameter").
TTL = 64

#: The destination, six bytes that come six bytes later in the request.
LOOK_AHEAD = {0: 6, 2: 8, 4: 10}

#: ``(protocol, offset): source``. A number is an offset in the request; a name one of the patches,
#: or of the words that :class:`~.services.HostServices` makes: parts of our addresses, checksums.
REWRITES = {
    **{(ANY, 6 + 2 * k): f"mac{k}" for k in range(3)},
    (ARP, 20): "reply",
    **{(ARP, 22 + 2 * k): f"mac{k}" for k in range(3)},
    **{(ARP, 28 + 2 * k): f"ip{k}" for k in range(2)},
    **{(ARP, 32 + 2 * k): 22 + 2 * k for k in range(5)},
    (IP, 22): "ttl",
    (IP, 24): "checksum",
    **{(IP, 26 + 2 * k): f"ip{k}" for k in range(2)},
    **{(IP, 30 + 2 * k): 26 + 2 * k for k in range(2)},
    (ICMP, 34): "echo_reply",
    (ICMP, 36): "checksum",
    (UDP, 34): "echo_port",
    (UDP, 36): 34,
}


def _patch(before, after):
    """Bits that stay, and bits that become 1, the first byte's lowest first; a byte None stays."""
    keep, ones = [], []
    for old, new in zip(before, after, strict=True):
        for bit in range(8):
            is_one = new is not None and new >> bit & 1
            same = new is None or (old is not None and not (old ^ new) >> bit & 1)
            keep.append(same)
            ones.append(bool(is_one) and not same)
    return keep, ones


#: What replaces two bytes of which something is known: a few gates instead of one more source.
PATCHES = {
    "reply": _patch((0, 1), (0, 2)),
    "ttl": _patch((None, None), (TTL, None)),
    "echo_reply": _patch((8, 0), (0, 0)),
    "echo_port": _patch((None, None), (0, 7)),
}


def select(code, values):
    """``values[code]`` as a tree of two-way multiplexers; the last value fills up the tree."""
    values = list(values)
    for bit in code:
        values += values[-1:] * (len(values) % 2)
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [low if low is high else _either(bit, low, high) for low, high in pairs]
    return values[0]


def _either(bit, low, high):
    chosen = bit.replicate(len(low))
    return Cat((chosen & high) | (~chosen & low))
