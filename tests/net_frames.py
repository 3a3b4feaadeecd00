"""Frames for the network tests, made by scapy so that they are an independent view."""

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

MAC, PEER_MAC = bytes.fromhex("10e2d5000001"), bytes.fromhex("02deadbeef07")
OUR_IP, PEER_IP = 0xC0A80132, 0xC0A801C8


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
