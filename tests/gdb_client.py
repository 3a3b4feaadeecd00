"""A GDB remote-serial-protocol client for the tests: packets as GDB sends them, and broken ones."""

import select
import socket

from patience import Patience


class GdbClient:
    """One debugger; a context manager. Everything waits at most ``seconds``."""

    def __init__(self, port, seconds=40):
        self.seconds = seconds
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.buffer = b""
        self.acknowledge = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def raw(self, data):
        self.socket.sendall(data)

    def byte(self):
        """The next byte; b"" when the server has hung up."""
        if not self.buffer:
            patience = Patience(self.seconds)
            while not select.select([self.socket], [], [], 0.2)[0]:
                assert not patience.over(), "the server does not answer"
            self.buffer = self.socket.recv(65536)
        byte, self.buffer = self.buffer[:1], self.buffer[1:]
        return byte

    def send(self, payload, checksum=None):
        payload = payload.encode() if isinstance(payload, str) else payload
        checksum = sum(payload) & 0xFF if checksum is None else checksum
        self.raw(b"$%s#%02x" % (payload, checksum))

    def receive(self):
        """The next packet, acknowledged, its sum checked."""
        while (byte := self.byte()) != b"$":
            assert byte, "the server has hung up"
            assert byte == b"+", byte
        payload = b""
        while (byte := self.byte()) != b"#":
            assert byte, "the server has hung up"
            payload += byte
        told = self.byte() + self.byte()
        assert int(told, 16) == sum(payload) & 0xFF
        if self.acknowledge:
            self.raw(b"+")
        return payload

    def ask(self, payload):
        self.send(payload)
        return self.receive().decode()

    # --- what GDB makes of it ---------------------------------------------------------------------

    def ok(self, payload):
        assert self.ask(payload) == "OK", payload

    def registers(self):
        data = bytes.fromhex(self.ask("g"))
        assert len(data) == 33 * 4
        return [int.from_bytes(data[k : k + 4], "little") for k in range(0, len(data), 4)]

    def pc(self):
        return int.from_bytes(bytes.fromhex(self.ask("p20")), "little")

    def read(self, address, length):
        data = bytes.fromhex(self.ask(f"m{address:x},{length:x}"))
        assert len(data) == length
        return data

    def write(self, address, data):
        self.ok(f"M{address:x},{len(data):x}:{data.hex()}")

    def monitor(self, text):
        return bytes.fromhex(self.ask(f"qRcmd,{text.encode().hex()}")).decode()
