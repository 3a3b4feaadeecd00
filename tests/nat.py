"""A network behind a router that masquerades: what a board's side of a NAT and the far side see.

Run as a program, it puts the rule into the network namespace that it runs in: ``nat.py DEVICE``.
It needs no tool but the kernel's nf_tables, to which it speaks netlink.
Source: Linux, include/uapi/linux/netfilter/nfnetlink.h and nf_tables.h.
"""

import contextlib
import socket
import struct
import subprocess
import sys

__all__ = ["FAR_IP", "ROUTER_IP", "far_side"]

#: The far side's address, and that of the router on the way there (RFC 5737, TEST-NET-2).
FAR_IP, ROUTER_IP = "198.51.100.2", "198.51.100.1"

_NETLINK_NETFILTER, _NF_TABLES = 12, 10
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11
_NEW_TABLE, _NEW_CHAIN, _NEW_RULE = (_NF_TABLES << 8 | kind for kind in (0, 3, 6))
_REQUEST, _ACK, _CREATE, _APPEND, _NESTED = 1, 4, 0x400, 0x800, 0x8000
_POSTROUTING, _PRIORITY_SOURCE_NAT = 4, 100
_REGISTER, _OUTPUT_DEVICE, _EQUAL = 1, 7, 0


def _attribute(kind, content):
    """An attribute; ``content``: bytes, text, a number of 32 bits, or a list of attributes."""
    if isinstance(content, list):
        kind, content = kind | _NESTED, b"".join(content)
    elif isinstance(content, str):
        content = content.encode() + b"\0"
    elif isinstance(content, int):
        content = struct.pack(">I", content)
    head = struct.pack("=HH", 4 + len(content), kind)
    return head + content + bytes(-len(content) % 4)


def _message(kind, flags, number, *attributes, resource=0):
    body = struct.pack(">BBH", socket.AF_INET, 0, resource) + b"".join(attributes)
    return struct.pack("=IHHII", 16 + len(body), kind, flags, number, 0) + body


def _expression(name, *attributes):
    return _attribute(1, [_attribute(1, name), _attribute(2, list(attributes))])


def masquerade(device):
    """Give what leaves this namespace by ``device`` the device's address; raise ``OSError``."""
    table, chain, create = "nat", "out", _REQUEST | _CREATE | _ACK
    name = device.encode().ljust(16, b"\0")
    rule = [
        _expression("meta", _attribute(2, _OUTPUT_DEVICE), _attribute(1, _REGISTER)),
        _expression(
            "cmp",
            _attribute(1, _REGISTER),
            _attribute(2, _EQUAL),
            _attribute(3, [_attribute(1, name)]),
        ),
        _expression("masq"),
    ]
    hook = [_attribute(1, _POSTROUTING), _attribute(2, _PRIORITY_SOURCE_NAT)]
    parts = [
        (_NEW_TABLE, create, [_attribute(1, table)]),
        (
            _NEW_CHAIN,
            create,
            [_attribute(1, table), _attribute(3, chain), _attribute(4, hook), _attribute(7, "nat")],
        ),
        (
            _NEW_RULE,
            create | _APPEND,
            [_attribute(1, table), _attribute(2, chain), _attribute(4, rule)],
        ),
    ]
    batch = _message(_BATCH_BEGIN, _REQUEST, 0, resource=_NF_TABLES)
    for number, (kind, flags, attributes) in enumerate(parts, 1):
        batch += _message(kind, flags, number, *attributes)
    batch += _message(_BATCH_END, _REQUEST, len(parts) + 1, resource=_NF_TABLES)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER) as netlink:
        netlink.settimeout(10)
        netlink.sendto(batch, (0, 0))
        for _ in parts:
            length, kind = struct.unpack_from("=IH", answer := netlink.recv(65536))
            (error,) = struct.unpack_from("=i", answer, 16)
            if kind != 2 or error:
                raise OSError(-error, f"nf_tables refuses: {answer[:length].hex()}")


@contextlib.contextmanager
def far_side(near):
    """A namespace that ``near``, a ``Namespace``, has a route to, and that has none to others.

    ``near`` forwards what comes to it and masquerades it. Raises ``RuntimeError`` where the kernel
    cannot do that.
    """
    from trebuchet.sim.netns import Namespace

    with Namespace(within=near) as far:
        pair = f"ip link add far0 type veth peer name eth0 netns {far.pid}"
        for namespace, commands in (
            (near, [pair, f"ip address add {ROUTER_IP}/24 dev far0", "ip link set far0 up"]),
            (far, [f"ip address add {FAR_IP}/24 dev eth0", "ip link set eth0 up"]),
            (near, ["sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'"]),
            (near, [f"{sys.executable} {__file__} far0"]),
        ):
            for command in commands:
                done = subprocess.run(
                    [*namespace.enter([], tether=False), "sh", "-c", command],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode:
                    raise RuntimeError(f"{command}: {done.stderr.strip()[-300:]}")
        yield far


if __name__ == "__main__":
    masquerade(sys.argv[1])
