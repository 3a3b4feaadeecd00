"""An engine in one direction of a bridge: it sees, changes or drops each frame that passes."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature, counter
from ..engines.stage import EngineStage
from ..stream import PacketSignature
from .inject import Injector
from .length import LONGEST, SHORTEST

__all__ = ["InlineEngine"]

_REFUSED = counter("refused", "those of them that are dropped here: marked, too short or too long")


class InlineEngine(wiring.Component):
    """Puts a body (:mod:`~trebuchet.cores.engines.contract`) in the way of frames.

    ==========  ====  ============  ==============================================================
    member      dir   shape         meaning
    ==========  ====  ============  ==============================================================
    ``i``       In    packet        frames: Ethernet header and payload, no FCS
    ``o``       Out   packet        what becomes of them, each without a pause; ``error`` is 0
    ``enable``  In    1             0: frames pass as they are
    ``csr``     In    CsrSignature  ``block``: that of ``EngineStage``, with ``refused``
    ==========  ====  ============  ==============================================================

    Each frame goes through the body, in an :class:`~trebuchet.cores.engines.stage.EngineStage`, and
    is stored; it is sent when all of it is there, has no error
    mark and a legal length. So a body *changes* a frame by giving another, *drops* it by giving one
    with ``error``, and may make it longer or shorter. What has grown beyond ``longest`` is dropped,
    as is what is shorter than ``shortest``; both count in ``refused``, like a damaged frame.

    *Who waits*: ``i`` waits for the body, which may be slower than the line, and for ``o``. Nothing
    else does: in a bridge the other direction has no part of this one, and frames of roles and of
    the board come in behind it. A body that hangs costs the frames at work, and ``patience``
    cycles (``EngineStage``); of one that never ends a frame nothing is sent, and it holds up its
    direction until ``reset`` is written.

    *Latency*: the body's, 1 cycle, the whole frame, and 5 cycles. *Throughput*: the body's; in
    bypass a beat a cycle. *Back-pressure*, *reset*, *bad input*: as ``EngineStage``.

    Parameters
    ----------
    body : Component
        The body.
    width : int
        Data path in bits.
    name : str
        Of the register block.
    shortest, longest : int
        Bytes of a legal frame, without FCS.
    options
        Of :class:`~trebuchet.cores.engines.stage.EngineStage`: ``most``, ``patience``.
    """

    def __init__(
        self, body, width=64, name="engine", *, shortest=SHORTEST, longest=LONGEST, **options
    ):
        # No ports: for proofs.
        self.stage = EngineStage(body, width, name, extra=(_REFUSED,), **options)
        self.exit = Injector(width, shortest, longest)
        self.block, self.verilog_files = self.stage.block, self.stage.verilog_files
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "enable": In(1),
                "csr": In(CsrSignature(self.block)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.stage = stage = self.stage
        m.submodules.exit = gate = self.exit
        connect, outside = wiring.connect, wiring.flipped
        connect(m, outside(self.i), stage.i)
        connect(m, stage.o, gate.i)
        connect(m, gate.o, outside(self.o))
        connect(m, outside(self.csr), stage.csr)
        m.d.comb += [stage.enable.eq(self.enable), gate.enable.eq(1)]
        refused = stage.extras[_REFUSED.name]
        m.d.sync += refused.eq(refused + gate.events.refused)
        return m
