"""A DHCP server on the network of a simulated board; it also keeps what the board sent."""

import contextlib
import socket
import threading

from dhcp_bench import options_of
from scapy.layers.dhcp import BOOTP
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

__all__ = ["DhcpServer"]

_ALL_PROTOCOLS = 0x0003
_KINDS = {1: "discover", 3: "request"}


class DhcpServer:
    """Answers on ``tap0`` of a board's namespace until it is closed; a context manager.

    ``ip``, ``lease`` and ``silent`` may be changed at any time. A request for another address than
    ``ip`` is refused (NAK). ``messages``: ``(kind, frame)`` of every message of the board;
    ``frames``: every frame that the board sent; ``mac``: the server's own address.
    """

    def __init__(self, board, ip="192.0.2.77", lease=600, silent=False):
        self.ip, self.lease, self.silent = ip, lease, silent
        self.messages, self.frames = [], []
        self._socket = board.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._socket.bind(("tap0", _ALL_PROTOCOLS))
        self._socket.settimeout(0.2)
        self.mac = self._socket.getsockname()[4].hex(":")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                data, (_, _, kind, *_) = self._socket.recvfrom(4096)
                if kind != socket.PACKET_OUTGOING:
                    self._take(data)

    def _take(self, data):
        self.frames.append(data)
        packet = Ether(data)
        if not packet.haslayer(BOOTP) or packet[UDP].dport != 67:
            return
        options = {o[0]: o[1] for o in packet["DHCP options"].options if isinstance(o, tuple)}
        kind = _KINDS[options["message-type"]]
        self.messages.append((kind, packet))
        if self.silent:
            return
        wanted = options.get("requested_addr", packet[BOOTP].ciaddr)
        if kind == "discover":
            self._answer(packet, "offer")
        else:
            self._answer(packet, "ack" if wanted == self.ip else "nak")

    def _answer(self, packet, kind):
        fields = {"server": "192.0.2.1", "lease": self.lease, "router": ["192.0.2.1"]}
        bootp = BOOTP(op=2, xid=packet[BOOTP].xid, chaddr=packet[BOOTP].chaddr)
        bootp.options, bootp.yiaddr = b"c\x82Sc", "0.0.0.0" if kind == "nak" else self.ip
        ether = Ether(src=self.mac, dst=packet.src, type=0x0800)
        to = "255.255.255.255" if kind == "nak" else self.ip
        datagram = IP(src="192.0.2.1", dst=to) / UDP(sport=67, dport=68)
        options = Raw(options_of(kind, **fields) + b"\xff")
        self._socket.send(bytes(ether / datagram / bootp / options))

    def kinds(self):
        """What the board asked for so far."""
        return [kind for kind, _ in self.messages]

    def close(self):
        self._stop.set()
        self._thread.join()
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
