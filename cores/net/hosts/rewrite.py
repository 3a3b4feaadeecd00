"""How a request becomes its answer: which two bytes of the frame come from where.

All offsets are of the first of two bytes in a frame without a VLAN tag.

Sources: RFC 826 (ARP), RFC 791, 3.1 (IPv4 header), RFC 792 (echo), RFC 768 (UDP).
"""

__all__ = ["ANY", "ARP", "ICMP", "IP", "LOOK_AHEAD", "REWRITES", "TTL", "UDP"]

#: What a rewrite holds for: every frame, or those of one protocol; IP is ICMP and UDP.
ANY, ARP, IP, ICMP, UDP = "any", "arp", "ip", "icmp", "udp"

#: Time to live of what we send (RFC 1700, "IP time to live parameter").
TTL = 64

#: The destination, six bytes that come six bytes later in the request.
LOOK_AHEAD = {0: 6, 2: 8, 4: 10}

#: ``(protocol, offset): source``. A number is an offset in the request; a pair are constant bytes,
#: of which None leaves one as it is; a name is one of the words that
#: :class:`~.services.HostServices` makes: parts of our addresses, updated checksums.
REWRITES = {
    **{(ANY, 6 + 2 * k): f"mac{k}" for k in range(3)},
    (ARP, 20): (0, 2),
    **{(ARP, 22 + 2 * k): f"mac{k}" for k in range(3)},
    **{(ARP, 28 + 2 * k): f"ip{k}" for k in range(2)},
    **{(ARP, 32 + 2 * k): 22 + 2 * k for k in range(5)},
    (IP, 22): (TTL, None),
    (IP, 24): "checksum",
    **{(IP, 26 + 2 * k): f"ip{k}" for k in range(2)},
    **{(IP, 30 + 2 * k): 26 + 2 * k for k in range(2)},
    (ICMP, 34): (0, 0),
    (ICMP, 36): "checksum",
    (UDP, 34): (0, 7),
    (UDP, 36): 34,
}
