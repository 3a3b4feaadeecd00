"""The smallest role: the result is the operand."""

from amaranth import Module
from amaranth.lib import wiring

from ...engines.contract import EngineLimits, StreamEngineSignature
from ...tcp.service import LENGTH_WIDTH
from ..needs import ResultConfig, RoleNeeds
from ..packet_role import PacketRole

__all__ = ["LoopbackRole", "Wire"]


class Wire(wiring.Component):
    """A packet stream in, the same packet stream out; no latency, no state.

    Parameters: ``width``. Ports: :class:`~trebuchet.cores.engines.contract.StreamEngineSignature`.
    """

    limits = EngineLimits(growth=0, latency=0)

    def __init__(self, width=32):
        super().__init__(StreamEngineSignature(width))

    def elaborate(self, platform):
        m = Module()
        wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m


class LoopbackRole(PacketRole):
    """Answers with the operand's bytes: measures the system without compute.

    Parameters: ``width``, ``tag_width`` of the memory port. Any length; an empty operand gives an
    empty result, one that is larger than ``room`` ``NO_ROOM``. Ports, latency, throughput, reset:
    :class:`~trebuchet.cores.roles.packet_role.PacketRole`. Option in a plan: ``result_bytes``.
    """

    Config = ResultConfig

    @staticmethod
    def needs(config):
        """What it needs of a shell: room for the largest operand, up to ``result_bytes``."""
        return RoleNeeds(largest_result=lambda operand: min(operand, config.result_bytes))

    @classmethod
    def place(cls, config, place):
        """The role; its option concerns the shell alone."""
        return cls(place.width, place.tag_width)

    def __init__(self, width=32, tag_width=2):
        super().__init__(Wire(width), width, tag_width, range(0, 1 << LENGTH_WIDTH))
