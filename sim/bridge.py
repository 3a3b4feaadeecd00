"""The simulated board between a host and its network, and that host: :class:`BridgeBoard`."""

import subprocess
from pathlib import Path

from ..models.errors import TrebuchetError
from .build import Source
from .netns import Namespace
from .run import Board, neighbour_ip

__all__ = ["BridgeBoard", "bridge_source"]

HARNESS = Path(__file__).resolve().parent / "bridge_harness"
#: The simulator's second device, as ``bridge_harness/dut_bridge.cpp`` calls it.
_DEVICE = "tap0h"


def bridge_source(plan=None, events=False, managed=True, tcp=None, overrides=None):
    """The SoC of the simulated board with two ports.

    ``plan``: other roles, services and engines than the board's own. ``events``: the TCP engine
    prints its trace events. ``managed``: it has a CPU. ``tcp``: another TCP engine.
    ``overrides``: other values of its fields.
    """
    from ..soc.build import build_sim

    files = build_sim(
        managed=managed, bridge=True, plan=plan, events=events, tcp=tcp, overrides=overrides
    )
    main = HARNESS / "dut_bridge.cpp"
    return Source("bridge", files.top, {}, files.sources, files.folder, ready_port=7, main=main)


class BridgeBoard(Board):
    """A simulated board with a host behind it; a context manager.

    192.0.2.1 is on the network, as for any :class:`~.run.Board`. ``behind_ip``, 192.0.2.3, is the
    host, in a namespace of its own: it reaches the network, and the board, by the board's second
    port only.

    Attributes
    ----------
    host : Namespace
        Hands out the host's sockets.
    """

    def __init__(self, binary, arguments=(), **options):
        super().__init__(binary, arguments, **options)
        self.behind_ip = neighbour_ip(self.ip, 3)
        with self._closed_on_error():
            self.host = self._cleanup.enter_context(Namespace(within=self.namespace))
            self._ip(self.namespace, "link", "set", _DEVICE, "netns", str(self.host.pid))
            self._ip(self.host, "address", "add", f"{self.behind_ip}/24", "dev", _DEVICE)
            self._ip(self.host, "link", "set", _DEVICE, "up")

    def inside_host(self):
        """How a user's shell begins a command on the host."""
        return self.inside(self.host)

    @staticmethod
    def _ip(namespace, *words):
        command = namespace.enter(["ip", *words])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TrebuchetError(f"ip {' '.join(words)}: {done.stderr.strip()}")
