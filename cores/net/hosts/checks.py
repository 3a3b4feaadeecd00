"""What a request must look like: a requirement of each two bytes of its headers.

All offsets are of the first of two bytes in a frame without a VLAN tag. Words are compared as they
stand in a beat, the first byte in bits 7..0.

Sources: RFC 826 (ARP); RFC 1122, 3.2.1.3 (addresses); RFC 791, 3.1 (IPv4 header); RFC 792 (echo);
RFC 768 (UDP); IANA, service names and port numbers (system ports: below 1024).
"""

from amaranth.hdl import Cat

from ..octets import byteswap

__all__ = ["GROUPS", "REQUIREMENTS", "UDP_GROUPS", "gather"]

#: Requirements that must all be met for what the group stands for.
GROUPS = ("mine", "all", "any", "arp", "ip", "myself", "icmp")
UDP_GROUPS = ("udp", "echo", "discard", "echo_source")


def _is(octets):
    value = int.from_bytes(octets, "little")
    return lambda half, _: half == value


def _ours(port, part, possible=False):
    """The half is one of our address; ``possible``: and that does not begin with a 0."""

    def test(half, core):
        value = core.mac if port == "mac" else byteswap(core.ip)
        same = half == value[16 * part : 16 * part + 16]
        return same & half[:8].any() if possible else same

    return test


def _can_be_a_host(half, _):
    """Not 0/8, 127/8, nor from 224 on."""
    first = half[:8]
    return first.any() & ~first[:7].all() & ~first[5:].all()


def _wide_enough(half, _):
    """A total length of at least 28: a header, and eight bytes of ICMP or UDP."""
    length = byteswap(half)
    return length[5:].any() | length[2:5].all()


#: ``name: (test, places)``; a place is ``(group, offset)``. A test gets the two bytes and the core.
REQUIREMENTS = {
    **{f"mac{k}": (_ours("mac", k), [("mine", 2 * k)]) for k in range(3)},
    "ones": (_is(b"\xff\xff"), [("all", 0), ("all", 2), ("all", 4)]),
    "unicast": (lambda half, _: ~half[0], [("any", 6)]),
    "type_arp": (_is(b"\x08\x06"), [("arp", 12)]),
    "ethernet": (_is(b"\x00\x01"), [("arp", 14), ("arp", 20)]),  # or operation 1, a request
    "ipv4": (_is(b"\x08\x00"), [("arp", 16), ("ip", 12), ("icmp", 34)]),  # or echo, code 0
    "lengths": (_is(b"\x06\x04"), [("arp", 18)]),
    "ip0": (_ours("ip", 0), [("myself", 26)]),
    "ip0_valid": (_ours("ip", 0, True), [("arp", 38), ("ip", 30)]),
    "ip1": (_ours("ip", 1), [("arp", 40), ("ip", 32), ("myself", 28)]),
    "header": (lambda half, _: half[:8] == 0x45, [("ip", 14)]),
    "total": (_wide_enough, [("ip", 16)]),
    "no_fragment": (lambda half, _: ~half[:6].any() & ~half[8:].any(), [("ip", 20)]),
    "source": (_can_be_a_host, [("ip", 26)]),
    "is_icmp": (lambda half, _: half[8:] == 1, [("icmp", 22)]),
    "is_udp": (lambda half, _: half[8:] == 17, [("udp", 22)]),
    "port_echo": (_is(b"\0\x07"), [("echo", 36)]),
    "port_discard": (_is(b"\0\x09"), [("discard", 36)]),
    "ephemeral": (lambda half, _: half[2:8].any(), [("echo_source", 34)]),
}


def gather(m, core, groups):
    """Return, by group, a signal: a requirement was not met in a beat before that in s1.

    Each comparison is a register beside s1; what is missed stays so until the next frame's first
    beat has left s1.
    """
    n, data, seen = core.n, core.i.p.data, {}
    missed = {group: core.missed[group] for group in groups}
    terms = {group: [] for group in groups}
    for name, (test, places) in REQUIREMENTS.items():
        for group, offset in places:
            if group not in groups:
                continue
            lane = offset % n
            if (name, lane) not in seen:
                met = seen[name, lane] = core.met(name, lane)
                with m.If(core.step):
                    m.d.sync += met.eq(test(data[8 * lane : 8 * lane + 16], core))
            terms[group].append(core.at1[offset // n] & ~seen[name, lane])
    with m.If(core.step):
        for group in groups:
            old = missed[group] & ~core.at1[0]
            m.d.sync += missed[group].eq(old | Cat(*terms[group]).any())
    return missed
