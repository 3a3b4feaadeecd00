"""The firmware's DHCP client under a test: compiled for this machine, its frames seen by scapy."""

import ctypes
import ipaddress
import mmap
import subprocess

from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

__all__ = ["COOKIE", "MAC", "SERVER", "SERVER_MAC", "Client", "Guarded", "check_message"]
__all__ += ["client_in", "compile_client", "ip_of", "options_sent", "reply"]

MAC = "02:00:00:00:00:02"
SERVER, SERVER_MAC = "10.0.0.1", "02:00:00:00:00:99"
COOKIE = b"c\x82Sc"
FRAME_BYTES = 342
STATES = ("init", "selecting", "requesting", "bound", "renewing", "rebinding")
TYPES = {"offer": 2, "ack": 5, "nak": 6}


class Lease(ctypes.Structure):
    _fields_ = [
        (n, ctypes.c_uint32) for n in ("ip", "netmask", "gateway", "server", "seconds", "t1", "t2")
    ]


class Dhcp(ctypes.Structure):
    """``struct dhcp`` of ``firmware/dhcp.h``."""

    _fields_ = [
        ("mac", ctypes.c_uint8 * 6),
        ("server_mac", ctypes.c_uint8 * 6),
        ("state", ctypes.c_int),
        ("fallen_back", ctypes.c_bool),
        ("due", ctypes.c_bool),
        ("tries", ctypes.c_uint8),
        ("requests", ctypes.c_uint8),
        ("secs", ctypes.c_uint16),
        *(
            (n, ctypes.c_uint32)
            for n in ("retry_ms", "xid", "random", "sent_ms", "wait_ms", "second_ms", "asked")
        ),
        ("since_request", ctypes.c_uint32),
        ("lease", Lease),
        ("name", ctypes.c_char * 32),
    ]


def compile_client(root, folder):
    """The client as a shared library with the sanitizer's checks."""
    path = folder / "dhcp.so"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared"]
    flags += ["-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-static-libubsan"]
    sources = [root / "firmware" / name for name in ("dhcp.c", "packet.c")]
    subprocess.run(["gcc", *flags, "-o", path, *sources], check=True)
    library = ctypes.CDLL(str(path))
    library.dhcp_tick.restype = ctypes.c_size_t
    library.dhcp_has_lease.restype = ctypes.c_bool
    library.dhcp_lease_left.restype = ctypes.c_uint32
    return library


class Guarded:
    """Bytes that end where a page begins that nobody may touch."""

    def __init__(self, pages=1):
        page = mmap.PAGESIZE
        self._map = mmap.mmap(-1, (pages + 1) * page)
        self._size = pages * page
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        libc = ctypes.CDLL(None, use_errno=True)
        arguments = (ctypes.c_void_p(self._base + self._size), ctypes.c_size_t(page), 0)
        assert libc.mprotect(*arguments) == 0

    def put(self, data):
        """Lay ``data`` against the guard; return its address."""
        address = self._base + self._size - len(data)
        ctypes.memmove(address, data, len(data))
        return address


class Client:
    """The client at a time of its own, in milliseconds."""

    def __init__(self, library, seed=1, retry_ms=1000, now=0, mac=MAC):
        self.library, self.now, self.mac = library, now, mac
        self.dhcp, self._guard = Dhcp(), Guarded()
        octets = bytes.fromhex(mac.replace(":", ""))
        self._call("start", octets, ctypes.c_uint32(seed), ctypes.c_uint32(retry_ms), self._time())

    def _call(self, name, *arguments):
        return getattr(self.library, f"dhcp_{name}")(ctypes.byref(self.dhcp), *arguments)

    def _time(self):
        return ctypes.c_uint32(self.now & 0xFFFFFFFF)

    @property
    def state(self):
        return STATES[self.dhcp.state]

    @property
    def has_lease(self):
        return self._call("has_lease")

    @property
    def left(self):
        return self._call("lease_left")

    def tick(self):
        """The frame that the client sends now, or None."""
        address = self._guard.put(bytes(FRAME_BYTES))
        length = self._call("tick", self._time(), ctypes.c_void_p(address))
        assert length in (0, FRAME_BYTES)
        return ctypes.string_at(address, length) if length else None

    def receive(self, frame):
        address = self._guard.put(bytes(frame))
        arguments = (ctypes.c_void_p(address), ctypes.c_size_t(len(frame)), self._time())
        self._call("receive", *arguments)

    def run(self, milliseconds, step=50):
        """Let time pass; return ``(time, frame)`` of everything sent."""
        sent, end = [], self.now + milliseconds
        while self.now < end:
            self.now += step
            if frame := self.tick():
                sent.append((self.now, frame))
        return sent

    def bind(self, **fields):
        """From the start to a lease without loss; returns the ACK."""
        discover = self.tick()
        self.receive(reply(discover, "offer", **fields))
        ack = reply(self.tick(), "ack", **fields)
        self.receive(ack)
        assert self.state == "bound"
        return ack

    def snapshot(self):
        return bytes(self.dhcp)


def option(code, data):
    return bytes([code, len(data)]) + bytes(data)


def address(text):
    return bytes(map(int, text.split(".")))


def options_of(kind, server=SERVER, lease=3600, netmask="255.255.255.0", **more):
    """Options in a server's order; None leaves one out. ``more``: router, t1, t2."""
    values = [
        (53, bytes([TYPES.get(kind, kind)])),
        (54, server and address(server)),
        (51, lease is not None and kind != "nak" and lease.to_bytes(4, "big")),
        (1, netmask and kind != "nak" and address(netmask)),
        (3, more.get("router") and b"".join(map(address, more["router"]))),
        (58, more.get("t1") is not None and more["t1"].to_bytes(4, "big")),
        (59, more.get("t2") is not None and more["t2"].to_bytes(4, "big")),
    ]
    return b"".join(option(code, data) for code, data in values if data)


def reply(frame, kind, ip="10.0.0.77", raw=None, change=None, **fields):
    """A server's answer to ``frame`` as bytes.

    ``fields`` as for :func:`options_of`; ``raw`` stands in the place of all options; ``change``
    maps a layer and a field to another value before checksums are made.
    """
    asked = Ether(frame)[BOOTP]
    options = raw if raw is not None else options_of(kind, **fields) + b"\xff"
    bootp = BOOTP(op=2, xid=asked.xid, chaddr=asked.chaddr, yiaddr="0.0.0.0", options=COOKIE)
    if kind != "nak":
        bootp.yiaddr = ip
    ether = Ether(src=SERVER_MAC, dst=MAC, type=0x0800)
    packet = ether / IP(src=SERVER, dst=ip) / UDP(sport=67, dport=68) / bootp / Raw(options)
    for (layer, name), value in (change or {}).items():
        setattr(packet[layer], name, value)
    return bytes(packet)


def options_sent(frame):
    """Options of a message of the client by name, in its order."""
    return {o[0]: o[1] for o in Ether(frame)[DHCP].options if isinstance(o, tuple)}


def ip_of(number):
    return str(ipaddress.IPv4Address(number))


def check_message(frame, kind, to=("ff:ff:ff:ff:ff:ff", "255.255.255.255"), source="0.0.0.0"):
    """A message of the client as RFC 2131 wants it, its checksums as scapy makes them."""
    packet = Ether(frame)
    assert (packet.src, packet.dst, packet[IP].src, packet[IP].dst) == (MAC, to[0], source, to[1])
    assert (packet[UDP].sport, packet[UDP].dport) == (68, 67)
    sums = packet[IP].chksum, packet[UDP].chksum
    del packet[IP].chksum, packet[UDP].chksum
    again = Ether(bytes(packet))
    assert (again[IP].chksum, again[UDP].chksum) == sums
    assert packet[IP].len == len(frame) - 14
    assert packet[UDP].len == len(frame) - 34
    bootp = packet[BOOTP]
    assert (bootp.op, bootp.htype, bootp.hlen, bootp.hops, bootp.flags) == (1, 1, 6, 0, 0)
    assert bootp.chaddr == bytes.fromhex(MAC.replace(":", "")) + bytes(10)
    assert bootp.ciaddr == source
    options = options_sent(frame)
    assert options["message-type"] == {"discover": 1, "request": 3}[kind]
    assert options["max_dhcp_size"] == 1500
    assert options["param_req_list"] == [1, 3]
    return options


def client_in(state, lib):
    """A client in a state, what it sent last, and the answer that would move it."""
    client = Client(lib)
    frame = client.tick()
    if state != "selecting":
        client.receive(reply(frame, "offer"))
        frame = client.tick()
    if state in ("renewing", "rebinding"):
        client.receive(reply(frame, "ack", lease=100))
        *_, (_, frame) = client.run({"renewing": 52_000, "rebinding": 89_000}[state], 1000)
    assert client.state == state
    return client, frame, "offer" if state == "selecting" else "ack"
