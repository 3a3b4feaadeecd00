"""The TCP engine and what it needs, with two services that hardly cost anything: for its figures.

The shell gives every session places for results and mailboxes, which a hundred thousand sessions
that only exist have no use for. This top has the same line side and engine, the discard service on
port 9 and responders with objects of three sizes.
"""

import dataclasses

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..cores.csr import CsrSignature
from ..cores.memory import MemorySignature
from ..cores.memory_arbiter import MemoryArbiter, connect_narrow
from ..cores.services.discard import Discard
from ..cores.services.responder import Responder
from ..cores.stream import PacketSignature
from ..cores.tcp.engine import TcpEngine
from ..cores.tcp.line_side import LineSide, line_side_blocks
from .defaults import PAGE, addresses
from .fabric import FabricOptions, emit

__all__ = ["DISCARD", "OBJECTS", "PORTS", "Toe", "toe_source"]

#: Bytes of the object that is answered, by TCP port.
OBJECTS = {8080: 1024, 8081: 20_000, 8082: 1_000_000}
DISCARD = 9
PORTS = (DISCARD, *OBJECTS)


class Toe(wiring.Component):
    """Classifier, parser, engine, sender and two services around one memory port.

    ================  ====  ===================================================================
    ``rx`` ``tx``     I/O   packet streams from and to the link
    ``mem``           Out   memory port
    ``tick``          In    1 for one cycle every millisecond of protocol time
    ``csr_…``         In    register blocks of the parts
    ================  ====  ===================================================================

    Parameters: ``config``, a TcpConfig whose ``ports`` are :data:`PORTS`; ``mac`` and ``ip`` as
    numbers, as registers of the shell have them; ``page``, address of what the responders answer.
    Frames that are not for the TCP engine are dropped.
    """

    def __init__(self, config, mac, ip, page):
        if config.ports != PORTS:
            raise ValueError(f"Ports must be {PORTS}, not {config.ports!r}")
        self.config, self.mac, self.ip, self.page = config, mac, ip, page
        self._engine = TcpEngine(config)
        ports, tag = (3, self._engine.state.signature.tag_width) if config.cache else (2, 2)
        self._arbiter = MemoryArbiter(
            ports,
            config.width,
            max(tag, config.tag_width),
            # Receive DMA and session store before the sender's reads.
            priority=(0, 1, 0)[:ports],
            prompt=range(ports),
        )
        blocks = line_side_blocks(config)
        super().__init__(
            {
                "rx": In(PacketSignature(config.width)),
                "tx": Out(PacketSignature(config.width)),
                "mem": Out(MemorySignature(config.width, self._arbiter.mem_tag_width)),
                "tick": In(1),
                **{f"csr_{name}": In(CsrSignature(block)) for name, block in blocks.items()},
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        engine = self._engine
        side = LineSide(m, engine, self.mac, self.ip)
        classifier, sender = side.classifier, side.sender
        m.submodules.memory = arbiter = self._arbiter
        rest = bool(config.places)
        services = [Discard(config.rows, rest)]
        for length in OBJECTS.values():
            services.append(page := Responder(config.rows, rest))
            m.d.comb += [page.addr.eq(self.page), page.length.eq(length)]
        m.submodules += services
        wiring.connect(m, wiring.flipped(self.rx), classifier.rx)
        wiring.connect(m, sender.frame, wiring.flipped(self.tx))
        for k, service in enumerate(services):
            wiring.connect(m, engine.services[k], service.service)
        memories = [engine.mem, sender.mem] + ([engine.state] if config.cache else [])
        for k, mem in enumerate(memories):
            connect_narrow(m, mem, arbiter.ports[k])
        wiring.connect(m, arbiter.mem, wiring.flipped(self.mem))
        for name, part in side.parts.items():
            wiring.connect(m, wiring.flipped(getattr(self, f"csr_{name}")), part.csr)
        m.d.comb += [
            classifier.enable.eq(1),
            classifier.other.ready.eq(1),
            engine.tick.eq(self.tick),
        ]
        return m


def toe_source(tcp, csr=None, **memory):
    """The TCP engine with services that hardly cost anything (:mod:`trebuchet.sim.toe`).

    Parameters
    ----------
    tcp : TcpConfig
        The engine; its ports are set here. The pool begins at address 0, the sessions' state, if
        it is in memory, behind it, and then comes what is answered.
    csr, memory
        As for :func:`~trebuchet.sim.fabric.fabric_source`.
    """
    tcp = dataclasses.replace(tcp, ports=PORTS, state_base=tcp.pool_size if tcp.cache else 0)
    page = tcp.pool_size + tcp.state_size
    options = FabricOptions(
        **{
            "memory_bytes": 1 << (page + max(OBJECTS.values()) - 1).bit_length(),
            "memory_init": {page: PAGE},
            "csr": csr or {},
            **memory,
        }
    )
    return dataclasses.replace(emit(Toe(tcp, *addresses(), page), options), ready_port=8080)  # type: ignore[call-arg]
