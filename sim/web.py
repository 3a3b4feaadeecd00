"""The TCP engine with the web service: a board that serves a folder from its memory.

The files are an image (:mod:`trebuchet.models.http.image`) that the memory model reads when the
simulation begins, from a file in the folder it runs in. So another folder needs no new simulator.
"""

import dataclasses
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..cores.arbiter import PacketArbiter
from ..cores.csr import CsrSignature
from ..cores.memory import MemorySignature
from ..cores.memory_arbiter import MemoryArbiter, connect_narrow
from ..cores.services.discard import Discard
from ..cores.services.sweep import RequestClock
from ..cores.stream import PacketSignature
from ..cores.tcp.config import TcpConfig
from ..cores.tcp.engine import TcpEngine
from ..cores.tcp.line_side import LineSide, line_side_blocks
from ..cores.web.desk import DESK_REGISTERS
from ..cores.web.service import Web
from ..models.errors import TrebuchetError
from ..models.http.folder import objects_of
from ..models.http.image import Image
from ..models.paths import build_folder
from .fabric import FabricOptions, emit

__all__ = ["CONFIG", "IMAGE_BASE", "IMAGE_FILE", "PORT", "WebTop", "web_folder", "web_source"]

PORT, DISCARD = 80, 9
#: 1,024 connections at a time, with 8 MiB for what they send.
CONFIG = TcpConfig(width=64, sessions=1024, segments=256, ports=(DISCARD, PORT))
MEMORY_BYTES = 1 << 27
IMAGE_BASE, BUCKETS = 1 << 24, 4096
#: What the memory model reads, in the folder in which the simulator runs.
IMAGE_FILE = "files.hex"
#: Ticks between two sweeps: a head may take up to twice as long.
SWEEP = 5000
LANES = 4


class WebTop(wiring.Component):
    """Classifier, parser, engine, sender, discard service and :class:`Web` around a memory port.

    ==========================  =============================================================
    ``rx`` ``tx``               packet streams from and to the link
    ``other_rx`` ``other_tx``   frames that are not for the TCP engine, and answers to them
    ``mem``                     memory port
    ``tick``                    1 for one cycle every millisecond of protocol time
    ``csr_…``                   register blocks of the parts
    ==========================  =============================================================

    Parameters: ``config``, a TcpConfig with the ports 9 and 80; ``mac`` and ``ip`` as numbers, as
    registers of the shell have them; ``image``, as :class:`Web` has it; ``lanes``; ``keeper``, a
    :class:`~trebuchet.sim.web_misses.Keeper` that answers what gateware does not, or None.
    """

    def __init__(self, config, mac, ip, image, lanes=LANES, keeper=None):
        self.config, self.mac, self.ip, self._keeper = config, mac, ip, keeper
        self._engine = TcpEngine(config)
        self._web = Web(
            config.width,
            config.rows,
            config.segment_log2,
            lanes=lanes,
            unread=config.unread,
            rest=bool(config.places),
            image=image,
            desk=keeper is not None,
        )
        tags = [self._web.mem.signature.tag_width, config.tag_width]
        tags += [self._engine.state.signature.tag_width] if config.cache else []
        # Receive DMA and session store before the sender's and the web service's reads.
        classes: tuple[int, ...] = (0, 1, 1, 0) if config.cache else (0, 1, 1)
        prompt = range(len(classes))  # all but the DMA of a drive
        classes += (1,) if keeper else ()
        self._arbiter = MemoryArbiter(
            len(classes), config.width, max(tags), priority=classes, prompt=prompt
        )
        blocks = line_side_blocks(config) | {"web": self._web.block}
        super().__init__(
            {
                "rx": In(PacketSignature(config.width)),
                "tx": Out(PacketSignature(config.width)),
                "other_rx": Out(PacketSignature(config.width)),
                "other_tx": In(PacketSignature(config.width)),
                "mem": Out(MemorySignature(config.width, self._arbiter.mem_tag_width)),
                "tick": In(1),
                **{f"csr_{name}": In(CsrSignature(block)) for name, block in blocks.items()},
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, engine, web = self.config, self._engine, self._web
        side = LineSide(m, engine, self.mac, self.ip)
        m.submodules.memory = arbiter = self._arbiter
        m.submodules.web, m.submodules.clock = web, (clock := RequestClock())
        m.submodules.discard = discard = Discard(config.rows, bool(config.places))
        m.submodules.to_link = to_link = PacketArbiter(config.width, 2)
        wiring.connect(m, wiring.flipped(self.rx), side.classifier.rx)
        wiring.connect(m, side.classifier.other, wiring.flipped(self.other_rx))
        wiring.connect(m, side.sender.frame, to_link.i[0])
        wiring.connect(m, wiring.flipped(self.other_tx), to_link.i[1])
        wiring.connect(m, to_link.o, wiring.flipped(self.tx))
        for k, service in enumerate((discard, web)):
            wiring.connect(m, engine.services[k], service.service)
        memories = [engine.mem, side.sender.mem, web.mem]
        memories += [engine.state] if config.cache else []
        memories += [self._keeper.mem] if self._keeper else []
        for k, mem in enumerate(memories):
            connect_narrow(m, mem, arbiter.ports[k])
        wiring.connect(m, arbiter.mem, wiring.flipped(self.mem))
        for name, part in (side.parts | {"web": web}).items():
            wiring.connect(m, wiring.flipped(getattr(self, f"csr_{name}")), part.csr)
        m.d.comb += [
            side.classifier.enable.eq(1),
            engine.tick.eq(self.tick),
            clock.tick.eq(self.tick),
            clock.period.eq(SWEEP),
            web.sweep.eq(clock.sweep),
        ]
        if self._keeper:
            self._connect_keeper(m)
        return m

    def _connect_keeper(self, m):
        m.submodules.keeper = self._keeper
        for register in DESK_REGISTERS:
            web, keeper = (
                getattr(part, register.name) for part in (self._web.csr, self._keeper.desk)
            )
            # The last assignment counts: not those of the top's registers.
            m.d.comb += keeper.eq(web) if register.access == "ro" else web.eq(keeper)


def web_source(config=CONFIG, lanes=LANES, **memory):
    """The :class:`~trebuchet.sim.build.Source` of :class:`WebTop`; it serves :data:`IMAGE_FILE`.

    ``memory``: as for :func:`~trebuchet.sim.fabric.fabric_source`.
    """
    from .defaults import addresses

    index = Image({}, IMAGE_BASE, buckets=BUCKETS).index
    image = (IMAGE_BASE, index, BUCKETS)
    top = WebTop(config, *addresses(), image, lanes)  # type: ignore[call-arg]
    options = FabricOptions(memory_bytes=MEMORY_BYTES, memory_file=IMAGE_FILE, **memory)
    return dataclasses.replace(emit(top, options), kind="fabric", ready_port=PORT)


def image_of(objects):
    """The image of objects for :func:`web_source`; raises TrebuchetError if they are too big."""
    try:
        return Image(objects, IMAGE_BASE, MEMORY_BYTES - IMAGE_BASE, buckets=BUCKETS)
    except ValueError as error:
        raise TrebuchetError(f"the simulated board cannot hold the files: {error}") from error


@contextmanager
def web_folder(folder):
    """A folder for a simulator to run in, with the image of the files of ``folder``.

    Yields the path, and the image. Raises TrebuchetError as :func:`image_of` and
    :func:`~trebuchet.models.http.folder.objects_of` do.
    """
    image = image_of(objects_of(folder))
    builds = build_folder("sim")
    builds.mkdir(parents=True, exist_ok=True)
    where = Path(tempfile.mkdtemp(prefix="web-", dir=builds))
    try:
        (where / IMAGE_FILE).write_text(hex_of(image, CONFIG.width // 8))
        yield where, image
    finally:
        shutil.rmtree(where, ignore_errors=True)


def hex_of(image, n):
    """The image as ``$readmemh`` reads it, in words of ``n`` bytes."""
    content = image.bytes + bytes(-len(image.bytes) % n)
    words = (content[i : i + n][::-1].hex() for i in range(0, len(content), n))
    return f"@{image.base // n:x}\n" + "\n".join(words) + "\n"
