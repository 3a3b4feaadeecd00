"""A network namespace of one's own, for root and for ordinary users.

:class:`Namespace` starts a small process inside a new network namespace (``unshare -n``, for
ordinary users ``unshare -rn``) that keeps it alive and hands out sockets made there. It reads from
a socket whose other end only the owner has, so it ends with its owner however that ends, and with
the last process in it the namespace and its devices disappear. Nothing gets a name in
``/run/netns``.

A socket belongs to the namespace in which it was made, not to that of the process that uses it:
sockets from :meth:`Namespace.socket` are ordinary sockets that reach the simulated network.

This file is also that process: it runs stand-alone, with the standard library only.
"""

import contextlib
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

__all__ = ["Namespace", "NamespaceError", "OwnNetwork"]

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_REQUEST = struct.Struct("=ii")  # family, type


class NamespaceError(Exception):
    """No namespace can be had here; the message says why."""


class Namespace:
    """A network namespace with its loopback device up; a context manager.

    ``pid`` is the keeper's process id; ``/proc/<pid>/ns/net`` names the namespace. Devices can be
    moved between it and the namespace ``within`` which it was made.
    """

    def __init__(self, within=None):
        self._rootless = os.geteuid() != 0
        self._lock = threading.Lock()
        for tool in ("unshare", "nsenter", "setpriv"):
            if shutil.which(tool) is None:
                raise NamespaceError(f"{tool} is missing; install the package util-linux")
        self._socket, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            # Not `python -m`: the keeper must start quickly and needs no package of ours.
            new_user = self._rootless and within is None
            command = ["unshare", "-rn" if new_user else "-n", sys.executable, "-I"]
            command += [str(Path(__file__).resolve()), str(far.fileno())]
            if within is not None:
                command = within.enter(command, tether=False)
            self._keeper = subprocess.Popen(
                command, pass_fds=[far.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
        self.pid = self._keeper.pid
        if self._socket.recv(16) != b"ready":
            reason = self._keeper.communicate()[1].decode(errors="replace").strip()
            self._socket.close()
            raise NamespaceError(f"cannot create a network namespace: {reason or 'unknown reason'}")

    def enter(self, command, tether=True):
        """``command`` prefixed such that it runs in the namespace.

        With ``tether`` it is killed when the thread that started it ends.
        """
        prefix = ["nsenter", "-t", str(self.pid), "-n"]
        if self._rootless:
            prefix += ["-U", "--preserve-credentials"]
        return [*prefix, *(_tether() if tether else ()), *map(str, command)]

    def socket(self, family=socket.AF_INET, type=socket.SOCK_STREAM):
        """A new, unconnected socket of the namespace."""
        if self._keeper.poll() is not None:
            raise NamespaceError("the namespace is closed")
        # Without the lock two threads could get each other's socket.
        with self._lock:
            self._socket.send(_REQUEST.pack(family, type))
            answer, fds, _, _ = socket.recv_fds(self._socket, 256, 1)
        if not fds:
            raise OSError(f"no socket in the namespace: {answer.decode(errors='replace')}")
        return socket.socket(family, type, fileno=fds[0])

    def close(self):
        """End the keeper; with the last process inside, the namespace goes away."""
        self._socket.close()
        try:
            self._keeper.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        if self._keeper.stderr:
            self._keeper.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _tether():
    """Words before a command that is to be killed when the thread that started it ends."""
    # The owner may have died before the signal was asked for: the parent is another then.
    alive = '[ "$PPID" = "$0" ] && exec "$@"'
    return ["setpriv", "--pdeathsig", "KILL", "sh", "-c", alive, str(os.getpid())]


class OwnNetwork:
    """The network that this process is on, with the methods of :class:`Namespace`."""

    def __init__(self):
        self.pid = os.getpid()

    def enter(self, command, tether=True):
        """``command``, with ``tether`` killed when the thread that started it ends."""
        return [*(_tether() if tether else ()), *map(str, command)]

    def socket(self, family=socket.AF_INET, type=socket.SOCK_STREAM):
        """A new, unconnected socket."""
        return socket.socket(family, type)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def _bring_up(name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sH14x", name.encode(), 0)
        flags = struct.unpack_from("H", fcntl.ioctl(s, _SIOCGIFFLAGS, request), 16)[0]
        fcntl.ioctl(s, _SIOCSIFFLAGS, struct.pack("16sH14x", name.encode(), flags | _IFF_UP))


def _quieten():
    """No IPv6 here: its neighbour discovery would only add noise to captures."""
    for scope in ("all", "default"):
        with contextlib.suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")


def _keep(fd):
    """The keeper: hands out sockets until its owner's end of the connection closes."""
    owner = socket.socket(fileno=fd)
    # Interrupts of the terminal are the owner's business.
    os.setpgrp()
    _bring_up("lo")
    _quieten()
    owner.send(b"ready")
    while request := owner.recv(_REQUEST.size):
        try:
            with socket.socket(*_REQUEST.unpack(request)) as made:
                socket.send_fds(owner, [b"ok"], [made.fileno()])
        except OSError as error:
            owner.send(str(error).encode())


if __name__ == "__main__":
    _keep(int(sys.argv[1]))
