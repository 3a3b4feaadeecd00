"""``trebuchet sim --tap``: a TAP device on this machine's own network, checked before use."""

import errno
import fcntl
import os
import re
import socket
import struct
from dataclasses import dataclass

from ..models.errors import TrebuchetError

__all__ = ["HostTap", "host_tap"]

_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 2, 0x1000
_DEVICE = "/dev/net/tun"


@dataclass(frozen=True)
class HostTap:
    """A TAP device that can be opened.

    Attributes
    ----------
    name : str
        Of the device.
    configured : bool
        It is there already, and keeps the addresses that it has; else the simulator makes it, gives
        it an address, and it disappears with the simulator.
    """

    name: str
    configured: bool


def host_tap(name: str) -> HostTap:
    """The device ``name``, opened once to see that this user may; faults say what to do."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,15}", name) or set(name) == {"."}:
        raise TrebuchetError(
            f"--tap must be a device's name of up to 15 letters, digits, _, . and -, not {name!r}"
        )
    there = name in (device for _, device in socket.if_nameindex())
    try:
        _open(name)
    except OSError as error:
        raise TrebuchetError(f"--tap {name}: {_reason(name, there, error)}") from None
    return HostTap(name, there)


def _open(name: str) -> None:
    """Attach to the device, and let it go; one that was not there disappears again."""
    file = os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC)
    try:
        request = struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI)
        fcntl.ioctl(file, _TUNSETIFF, request)
    finally:
        os.close(file)


def _reason(name: str, there: bool, error: OSError) -> str:
    if error.errno in (errno.EPERM, errno.EACCES):
        if there:
            return "the device belongs to another user; choose another name"
        return (
            "only root makes TAP devices; have root make it for you: "
            f"ip tuntap add dev {name} mode tap user $USER; "
            f"ip address add 192.0.2.1/24 dev {name}; ip link set {name} up"
        )
    if error.errno == errno.EBUSY:
        return "another program has this device open; end it, or choose another name"
    if error.errno == errno.EINVAL and there:
        return "this is a network device, but no TAP device; choose another name"
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"there is no {_DEVICE}; load the kernel's module with: sudo modprobe tun"
    return f"it cannot be opened: {error.strerror}"
