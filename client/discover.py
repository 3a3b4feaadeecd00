"""Find boards on this machine's networks: a broadcast, and who answers (docs/firmware.md)."""

import contextlib
import ipaddress
import select
import socket
import struct
import sys
from collections.abc import Iterable, Iterator

from ..models.discovery import PORT, REQUEST, Found, parse_answer
from ..models.errors import TrebuchetError, did_you_mean
from ..models.progress import Deadline, current_simulation

__all__ = ["WAIT", "discover", "networks"]

#: Seconds without a further board after which the search ends. A board whose DHCP server is silent
#: listens for that server's answers only for four seconds at a time.
WAIT = 5.0
#: Seconds between two requests: the first ones, then the last again and again.
_PAUSES = (0.25, 0.5, 1.0)
#: An answer has less.
_RECEIVED = 2048
#: Linux, <linux/sockios.h>, <linux/if.h>.
_FLAGS, _ADDRESS, _NETMASK = 0x8913, 0x8915, 0x891B
_ASKED = (_ADDRESS, _NETMASK)
_UP, _BROADCAST, _LOOPBACK = 1, 2, 8
#: Networks with fewer addresses have none for all stations (RFC 3021).
_LEAST_PREFIX = 31

Network = ipaddress.IPv4Network


def networks() -> dict[str, ipaddress.IPv4Interface]:
    """Address and network of each of this machine's interfaces with broadcasts, by name.

    Of an interface with several addresses, the first. Empty where the system is not Linux.
    """
    if not sys.platform.startswith("linux"):
        return {}
    import fcntl  # noqa: PLC0415 - not every system has it

    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:

        def ask(code: int, name: str) -> bytes:
            return fcntl.ioctl(asking, code, struct.pack("256s", name.encode()))[16:24]

        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError, ValueError):  # it has no address
                (flags,) = struct.unpack_from("H", ask(_FLAGS, name))
                if flags & (_UP | _BROADCAST | _LOOPBACK) != _UP | _BROADCAST:
                    continue
                address, mask = (socket.inet_ntoa(ask(code, name)[4:]) for code in _ASKED)
                found[name] = ipaddress.IPv4Interface(f"{address}/{mask}")
    return found


def _targets(network: Network) -> list[str]:
    """Where to send for all stations of a network: one address, of the smallest each."""
    if network.prefixlen >= _LEAST_PREFIX:
        return [str(host) for host in network]
    return [str(network.broadcast_address)]


def _open(address: str, name: str | None) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    if name is not None:
        with contextlib.suppress(OSError, AttributeError):  # needs a right on some systems
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode())
    made.bind((address, 0))
    return made


def _plan(interface: str | None, network: str | None) -> list[tuple[socket.socket, list[str]]]:
    """Sockets, and where each of them sends to."""
    if network is not None:
        try:
            wanted = Network(network, strict=False)
        except ValueError:
            raise TrebuchetError(
                f"the network must be like 192.168.1.0/24, not {network!r}"
            ) from None
        return [(_open("", interface), _targets(wanted))]
    here = networks()
    if interface is not None:
        if interface not in here:
            raise TrebuchetError(
                f"there is no interface {interface!r} with an IPv4 address and broadcasts"
                + (did_you_mean(interface, here) or f"; there are: {', '.join(here) or 'none'}")
            )
        here = {interface: here[interface]}
    if not here:
        if sys.platform.startswith("linux"):
            raise TrebuchetError(
                "no interface of this machine has an IPv4 address and broadcasts; is the cable in?"
            )
        return [(_open("", None), ["255.255.255.255"])]
    return [(_open(str(a.ip), name), _targets(a.network)) for name, a in here.items()]


def _send(plan: Iterable[tuple[socket.socket, list[str]]]) -> str | None:
    """Send a request each; why none could be sent, or None."""
    fault, sent = None, False
    for made, targets in plan:
        for target in targets:
            try:
                made.sendto(REQUEST, (target, PORT))
                sent = True
            except OSError as error:  # a cable that is out, for one
                fault = f"cannot send to {target}: {error.strerror or error}"
    return None if sent else fault


def _receive(made: socket.socket) -> Iterator[Found]:
    while True:
        try:
            data, (sender, port) = made.recvfrom(_RECEIVED)
        except BlockingIOError:
            return
        except OSError:  # an ICMP error about a request
            continue
        found = parse_answer(data, sender)
        if port == PORT and found is not None:
            yield found


def discover(
    interface: str | None = None, network: str | None = None, wait: float = WAIT
) -> list[Found]:
    """Return the boards that answer a broadcast, sorted by address.

    Boards with a processor and firmware of version 0.2 or newer answer, to hosts of their own
    network. Two boards with one address, or of one MAC address, are both in the list.

    Parameters
    ----------
    interface : str or None
        Ask on this interface only, such as ``"eth0"``; None: on all that have broadcasts.
    network : str or None
        Ask this network in their place: ``"192.168.1.0/24"``; ``"192.168.1.50/32"`` is one board.
    wait : float
        Seconds (of a simulation that started this process, simulated ones) without a further
        board after which the search ends.

    Raises
    ------
    TrebuchetError
        There is no such interface or network, or no request could be sent.
    """
    plan = _plan(interface, network)
    found: dict[tuple[str, str], Found] = {}
    try:
        _search(plan, found, wait)
    finally:
        for made, _ in plan:
            made.close()
    return sorted(found.values(), key=lambda f: (ipaddress.IPv4Address(f.address), f.mac))


def _search(
    plan: list[tuple[socket.socket, list[str]]],
    found: dict[tuple[str, str], Found],
    wait: float,
) -> None:
    simulation = current_simulation()
    sockets = [made for made, _ in plan]
    pauses, quiet = iter(_PAUSES), Deadline(wait, simulation)
    following, fault = Deadline(0), None
    while quiet.left():
        if not following.left():
            fault = _send(plan)
            following = Deadline(next(pauses, _PAUSES[-1]), simulation)
        pause = min(following.left(), quiet.left(), 0.1)
        for made in select.select(sockets, [], [], pause)[0]:
            for board in _receive(made):
                if (board.address, board.mac) not in found:
                    quiet = Deadline(wait, simulation)
                found[board.address, board.mac] = board
    if fault and not found:
        raise TrebuchetError(fault)
