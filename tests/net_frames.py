"""Frames for the network tests, made by scapy so that they are an independent view."""

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

MAC, PEER_MAC = bytes.fromhex("10e2d5000001"), bytes.fromhex("02deadbeef07")
OUR_IP, PEER_IP = 0xC0A80132, 0xC0A801C8


def tag_of(tci):
    """A VLAN tag as the gateware has it beside a frame; ``tci`` None: there is none."""
    return 0 if tci is None else 1 << 16 | tci


def mac_text(mac):
    return ":".join(f"{b:02x}" for b in mac)


def ip_text(ip):
    return ".".join(str(b) for b in ip.to_bytes(4, "big"))


def tcp_frame(
    payload=b"",
    *,
    flags=0x10,
    seq=1,
    ack=2,
    window=8192,
    sport=40000,
    dport=7,
    tcp_options=b"",
    ip_options=b"",
    mac=MAC,
    ip=OUR_IP,
    pad=True,
    padding=b"",
    src_mac=PEER_MAC,
    src_ip=PEER_IP,
    **ip_fields,
):
    """A TCP frame with right checksums; options are raw bytes, padded with zeros to words."""
    tcp_options = tcp_options.ljust(-(-len(tcp_options) // 4) * 4, b"\0")
    ip_options = ip_options.ljust(-(-len(ip_options) // 4) * 4, b"\0")
    tcp = TCP(
        sport=sport,
        dport=dport,
        seq=seq,
        ack=ack,
        flags=flags,
        window=window,
        dataofs=5 + len(tcp_options) // 4,
    )
    # scapy would re-encode options, and evil ones must stay: they are spliced in as bytes.
    ip_fields.setdefault("proto", 6)
    ip_layer = IP(src=ip_text(src_ip), dst=ip_text(ip), ihl=5 + len(ip_options) // 4, **ip_fields)
    length = 20 + len(ip_options) + 20 + len(tcp_options) + len(payload)
    ip_layer.len = ip_fields.get("len", length)
    header = bytearray(bytes(ip_layer)[:20] + ip_options)
    header[10:12] = b"\0\0"
    header[10:12] = scapy_checksum(bytes(header)).to_bytes(2, "big")
    tcp.chksum = 0
    body = bytearray(bytes(tcp)[:20] + tcp_options + payload)
    pseudo = bytes(header[12:20]) + b"\0\x06" + len(body).to_bytes(2, "big")
    body[16:18] = scapy_checksum(pseudo + bytes(body)).to_bytes(2, "big")
    frame = bytes(
        Ether(src=mac_text(src_mac), dst=mac_text(mac), type=0x0800)
        / Raw(bytes(header) + bytes(body))
    )
    if pad:
        frame = frame.ljust(60, b"\0")
    return frame + padding


def scapy_checksum(octets):
    from scapy.utils import checksum

    return checksum(octets)


def recompute(frame):
    """The same frame with checksums that scapy works out anew from its own dissection."""
    packet = Ether(frame)
    del packet[IP].chksum
    del packet[TCP].chksum
    return bytes(packet)


def icmp_error(
    code=3,
    mtu=0,
    *,
    kind=3,
    seq=1,
    sport=7,
    dport=40000,
    dst=PEER_IP,
    src=OUR_IP,
    quoted_options=b"",
    quote=None,
    more=b"",
    mac=MAC,
    ip=OUR_IP,
    router=0x0A090807,
    ip_options=b"",
    pad=True,
    padding=b"",
    **ip_fields,
):
    """An ICMP error with right checksums about a segment of ours, as a router would send it.

    ``quote``: instead of the segment's beginning, which ``quoted_options`` of IP may lie in; behind
    it comes ``more``. ``ip_fields``: of the message's own IPv4 header.
    """
    if quote is None:
        inner = IP(src=ip_text(src), dst=ip_text(dst), ttl=3, flags="DF", len=1500, proto=6)
        inner.ihl = 5 + len(quoted_options) // 4
        segment = bytes(TCP(sport=sport, dport=dport, seq=seq, flags="A"))[:8]
        quote = bytes(inner)[:20] + quoted_options + segment
    message = bytes([kind, code, 0, 0, 0, 0]) + mtu.to_bytes(2, "big") + quote + more
    message = message[:2] + scapy_checksum(message).to_bytes(2, "big") + message[4:]
    ip_fields.setdefault("proto", 1)
    outer = IP(src=ip_text(router), dst=ip_text(ip), ihl=5 + len(ip_options) // 4, **ip_fields)
    outer.len = ip_fields.get("len", 20 + len(ip_options) + len(message))
    header = bytearray(bytes(outer)[:20] + ip_options)
    header[10:12] = b"\0\0"
    header[10:12] = scapy_checksum(bytes(header)).to_bytes(2, "big")
    ether = Ether(src=mac_text(PEER_MAC), dst=mac_text(mac), type=0x0800)
    frame = bytes(ether / Raw(bytes(header) + message))
    return (frame.ljust(60, b"\0") if pad else frame) + padding
