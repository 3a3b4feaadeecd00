"""The bridge: a board between a host and its switch, with roles at a tap in the wire.

Source: cloud-scale-acceleration, section II.A.
"""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..buffers import PacketFifo, StreamFifo
from ..csr import CsrSignature, Register, RegisterBlock, counter
from ..stream import PacketSignature, beat_layout
from .fair import FairMux
from .inject import INJECT_EVENTS, Injector
from .inline import InlineEngine
from .length import LONGEST, SHORTEST
from .tap import TAP_EVENTS, FrameTap, TapSignature

__all__ = ["BRIDGE_BLOCK", "DIRECTIONS", "Bridge", "BridgeLane"]

#: Direction ``d`` goes from port ``d`` to port ``1 - d``; port 0 is the network's, 1 the host's.
DIRECTIONS = ("inbound", "outbound")

_COUNTERS = {
    "passed": "frames from the wire that went on as good ones",
    "altered": "those of them of which the role changed bytes",
    "dropped": "frames that the role dropped",
    "damaged": "frames that came with an error mark",
    "runt": "frames that were too short",
    "oversize": "frames that were too long",
    "injected": "frames of the role that were taken",
    "refused": "frames of the role that were not: bad, broken off or in bypass",
}

BRIDGE_BLOCK = RegisterBlock(
    "bridge",
    (
        Register("enable", "rw", 1, "0: bypass; no role sees, alters, drops or sends anything"),
        *(
            counter(f"{direction}_{name}", description)
            for direction in DIRECTIONS
            for name, description in _COUNTERS.items()
        ),
    ),
    "bridge between the network's port and the host's",
)


class BridgeLane(wiring.Component):
    """One direction of a :class:`Bridge`; see there.

    ============  ====  ==================  =======================================================
    member        dir   shape               meaning
    ============  ====  ==================  =======================================================
    ``rx``        In    packet stream       frames from one MAC
    ``tx``        Out   packet stream       frames to the other
    ``tap``       Out   TapSignature        the role's view, and its verdicts
    ``inject``    In    packet stream       frames of the role
    ``enable``    In    1                   0: bypass
    ``events``    Out   ``TAP_EVENTS``      strobes for counters
    ``injects``   Out   ``INJECT_EVENTS``   strobes for counters
    ``csr``       In    CsrSignature        of the engine in-line, if there is one
    ============  ====  ==================  =======================================================

    ``engine``: None, or name and body of an engine; see :class:`Bridge`.
    """

    def __init__(
        self,
        width=64,
        *,
        store_and_forward=False,
        latency=8,
        shortest=SHORTEST,
        longest=LONGEST,
        depth=None,
        shortest_injected=None,
        engine=None,
    ):
        self.width, self.store_and_forward = width, bool(store_and_forward)
        # No ports: for the proofs' invariants.
        self.frame_tap = FrameTap(width, latency, shortest, longest)
        beats = self.frame_tap.bounds.beats
        self.depth = 2 << beats.bit_length() if depth is None else depth
        if not isinstance(self.depth, int) or self.depth < beats:
            raise ValueError(
                f"Depth of the store must be at least the {beats} beats of the longest frame, "
                f"not {depth!r}"
            )
        least = shortest if shortest_injected is None else shortest_injected
        self.injector = Injector(width, least, longest)
        self.mux = FairMux(width, beats)
        members = {
            "rx": In(PacketSignature(width)),
            "tx": Out(PacketSignature(width)),
            "tap": Out(TapSignature(width)),
            "inject": In(PacketSignature(width)),
            "enable": In(1),
            "events": Out(TAP_EVENTS),
            "injects": Out(INJECT_EVENTS),
        }
        self.engine = None
        if engine is not None:
            name, body = engine
            self.engine = InlineEngine(body, width, name, shortest=least, longest=longest)
            members["csr"] = In(CsrSignature(self.engine.block))
        super().__init__(members)

    # rx -> tap -> store -> mux -> tx, and inject -> injector -> mux. The store keeps the line
    # going while a role's frame leaves; in store-and-forward it also drops what the tap marked.
    # An engine lies between store and mux: it sees what passes, and no frame of the role.
    def elaborate(self, platform):
        m = Module()
        m.submodules.tap = tap = self.frame_tap
        m.submodules.injector = injector = self.injector
        m.submodules.mux = mux = self.mux
        if self.store_and_forward:
            store = PacketFifo(self.width, self.depth, drop_when_full=False)
        else:
            store = StreamFifo(beat_layout(self.width), self.depth)
        m.submodules.store = self.store = store  # no port: for the proofs' invariants
        connect, outside = wiring.connect, wiring.flipped
        connect(m, outside(self.rx), tap.i)
        connect(m, tap.tap, outside(self.tap))
        connect(m, tap.o, store.i)
        if self.engine is None:
            connect(m, store.o, mux.i[0])
        else:
            m.submodules.engine = engine = self.engine
            connect(m, store.o, engine.i)
            connect(m, engine.o, mux.i[0])
            connect(m, outside(self.csr), engine.csr)
            m.d.comb += engine.enable.eq(self.enable)
        connect(m, outside(self.inject), injector.i)
        connect(m, injector.o, mux.i[1])
        connect(m, mux.o, outside(self.tx))
        m.d.comb += [
            tap.enable.eq(self.enable),
            injector.enable.eq(self.enable),
            self.events.eq(tap.events),
            self.injects.eq(injector.events),
        ]
        return m


class Bridge(wiring.Component):
    """Two MACs, joined both ways, with a tap in each direction.

    ===========  =====  ==================  =======================================================
    member       dir    shape               meaning
    ===========  =====  ==================  =======================================================
    ``rx``       In×2   packet streams      frames from the MAC of port 0 (network), 1 (host)
    ``tx``       Out×2  packet streams      frames to the MAC of port 0, 1
    ``tap``      Out×2  TapSignature        direction 0 (``inbound``, from port 0 to 1) and 1
    ``inject``   In×2   packet streams      a role's frames in direction 0, to port 1, and 1
    ``csr``      In     CsrSignature        :data:`BRIDGE_BLOCK`
    ===========  =====  ==================  =======================================================

    With an engine there is further ``csr_inbound`` or ``csr_outbound``, its registers.

    Frames have their Ethernet header, but neither preamble nor FCS. The directions are independent.

    *Order and loss*: the frames of a direction that no role drops and that are legal leave once,
    unaltered but for what a role altered, in the order in which they came. Frames of a role come
    between them, whole. The bridge itself never drops a legal frame: when more is to leave than
    the line takes, ``rx`` waits, and the MAC before it pauses its peer or drops.

    *Bad frames* (too short, too long, damaged; :class:`~trebuchet.cores.bridge.tap.FrameTap`) are
    counted. With store-and-forward they are dropped; with cut-through they leave with ``error`` on
    their last beat, and a MAC must send them with a wrong FCS. Cut-through cuts a frame at the
    ``longest`` allowed, so none takes the line for ever.

    *Shares*: when pass-through traffic and a role both want the line, each gets half of the beats;
    the one that waits, waits for less than two of the longest frames
    (:class:`~trebuchet.cores.bridge.fair.FairMux`). Injected frames are stored whole before they
    leave, and verdicts come in step with the frames, so no role can stall the line.

    *Engines*: an engine in-line (:class:`~trebuchet.cores.bridge.inline.InlineEngine`) works on the
    frames that pass in its direction, after the tap and the store. Frames that it drops, and those
    that have grown beyond ``longest``, are gone; ``passed`` has counted them all the same. It may
    be slower than the line: then ``rx`` of its direction waits, and nothing else. What leaves it is
    whole and without a pause, so with cut-through, too, no marked frame leaves its direction.

    *Bypass*: while ``enable`` is 0, which is its reset value, nothing is shown and roles' frames
    are swallowed. It counts from the next frame's beginning: a frame under way keeps its role.
    Engines are passed by, too.

    *Latency*, first beat in to first out, line idle: cut-through ``latency + 4`` cycles;
    store-and-forward ``latency + 5`` after the last beat came in; an engine's comes on top.
    *Throughput*: one beat a cycle each way, so the line rate of any Ethernet whose bytes come no
    faster. *Reset*: empty, in bypass, counters 0.

    Parameters
    ----------
    width : int
        Data path in bits.
    store_and_forward : bool
        Send a frame when all of it is here and good, not as soon as it begins.
    latency : int
        Steps that a role has for its verdict. With cut-through, a frame leaves no trace only if it
        is dropped on its first beat, so this is also how far the role sees ahead.
    shortest, longest : int
        Bytes of a legal frame, without FCS.
    depth : int or None
        Beats in each direction's store, a power of two for store-and-forward; by default at least
        two of the longest frames.
    shortest_injected : int or None
        Bytes of a role's or an engine's shortest frame where the MACs pad; None for ``shortest``.
    engines : mapping
        Body of the engine by direction, ``inbound`` or ``outbound``, each with the name of its
        register block: ``{"inbound": (name, body)}``.
    """

    def __init__(self, width=64, *, engines=None, **options):
        self.width, self.engines = width, dict(engines or {})
        if not self.engines.keys() <= set(DIRECTIONS):
            raise ValueError(f"Engines must be of {DIRECTIONS}, not {sorted(self.engines)}")
        self.lanes = [BridgeLane(width, engine=self.engines.get(d), **options) for d in DIRECTIONS]
        members = {
            "rx": In(PacketSignature(width)).array(2),
            "tx": Out(PacketSignature(width)).array(2),
            "tap": Out(TapSignature(width)).array(2),
            "inject": In(PacketSignature(width)).array(2),
            "csr": In(CsrSignature(BRIDGE_BLOCK)),
        }
        # Blocks of the engines, by the member's name.
        self.engine_blocks = {
            f"csr_{direction}": lane.engine.block
            for direction, lane in zip(DIRECTIONS, self.lanes, strict=True)
            if lane.engine is not None
        }
        engines = [lane.engine for lane in self.lanes if lane.engine is not None]
        self.verilog_files = tuple(path for engine in engines for path in engine.verilog_files)
        members |= {name: In(CsrSignature(block)) for name, block in self.engine_blocks.items()}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        for d, (direction, lane) in enumerate(zip(DIRECTIONS, self.lanes, strict=True)):
            m.submodules[direction] = lane
            wiring.connect(m, wiring.flipped(self.rx[d]), lane.rx)
            wiring.connect(m, lane.tx, wiring.flipped(self.tx[1 - d]))
            wiring.connect(m, lane.tap, wiring.flipped(self.tap[d]))
            wiring.connect(m, wiring.flipped(self.inject[d]), lane.inject)
            m.d.comb += lane.enable.eq(self.csr.enable)
            if lane.engine is not None:
                registers = getattr(self, f"csr_{direction}")
                wiring.connect(m, wiring.flipped(registers), lane.csr)
            for events in (lane.events, lane.injects):
                for name, _ in events.shape():
                    # The adder begins at a register.
                    strobe = Signal(name=f"{direction}_{name}")
                    count = getattr(self.csr, f"{direction}_{name}")
                    m.d.sync += [strobe.eq(events[name]), count.eq(count + strobe)]
        return m
