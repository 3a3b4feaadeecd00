"""From a memory port to AXI4: for designs whose memory is behind an AXI interconnect.

Source: AMBA AXI and ACE protocol specification (ARM IHI 0022E), sections A3 (channels, bursts),
A5 (identifiers) and A7 (responses).
"""

from amaranth import unsigned
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from .memory import ADDR_WIDTH, BEATS_WIDTH, MemorySignature
from .stream import check_data_width

__all__ = ["AxiMaster", "AxiSignature"]

#: No burst may cross a multiple of this many bytes (A3.4.1).
BOUNDARY_LOG2 = 12


class AxiSignature(wiring.Signature):
    """An AXI4 interface, from the manager's side; ``width`` is that of the data, in bits.

    =========  ====  ===================================
    member     dir   payload
    =========  ====  ===================================
    ``aw``     Out   ``addr`` (bytes), ``len`` (beats - 1)
    ``w``      Out   ``data``, ``strb``, ``last``
    ``b``      In    ``resp``
    ``ar``     Out   ``addr``, ``len``
    ``r``      In    ``data``, ``resp``, ``last``
    =========  ====  ===================================

    The other signals of AXI4 are constants: all identifiers 0, ``size`` all of the data path,
    ``burst`` INCR. Whoever makes an interface of this adds them.
    """

    def __init__(self, width):
        self.width = check_data_width(width)
        address = stream.Signature(data.StructLayout({"addr": ADDR_WIDTH, "len": 8}))
        w = {"data": unsigned(width), "strb": unsigned(width // 8), "last": unsigned(1)}
        r = {"data": unsigned(width), "resp": unsigned(2), "last": unsigned(1)}
        super().__init__(
            {
                "aw": Out(address),
                "w": Out(stream.Signature(data.StructLayout(w))),
                "b": In(stream.Signature(data.StructLayout({"resp": 2}))),
                "ar": Out(address),
                "r": In(stream.Signature(data.StructLayout(r))),
            }
        )

    def __eq__(self, other):
        return isinstance(other, AxiSignature) and self.width == other.width

    def __repr__(self):
        return f"AxiSignature({self.width})"


class AxiMaster(wiring.Component):
    """Memory port on one side, AXI4 manager of the same width on the other.

    ===========  ======================  =========================================================
    member       signature               meaning
    ===========  ======================  =========================================================
    ``mem``      In(MemorySignature)     the requester
    ``axi``      Out(AxiSignature)       the memory
    ``errors``   Out(2)                  for a cycle: a write (bit 0) or a beat that was read (bit
                                         1) was answered SLVERR or DECERR
    ===========  ======================  =========================================================

    A burst that crosses a multiple of 4 KiB becomes two. All transactions have identifier 0, so
    read data come back in command order and are never interleaved (rule 4 of the memory port), and
    so do write responses. ``wdone`` is the response to the burst's last part: AXI sends it when the
    write is visible to all managers of the interconnect (rule 5). Reads and writes run
    independently.

    *Latency*: 2 cycles from ``mem.cmd`` to ``axi.ar`` or ``axi.aw``; none from ``mem.wdata``,
    ``axi.r`` and ``axi.b``. ``axi.w`` is offered from the same cycle on as ``axi.aw``, whether or
    not the address has been accepted (A3.3.1). *Throughput*: a beat a cycle each way; a burst every
    2 cycles. *Back-pressure*: at most ``outstanding`` bursts each way wait for their responses;
    ``mem.cmd`` waits beyond that. ``axi.r`` waits for ``mem.rdata``, ``axi.b`` for ``mem.wdone``.
    *Reset*: forgets everything; the interconnect must be reset with it. *Bad input*: a response
    that was not asked for waits for ever; a bad address is answered as the interconnect does,
    ``errors`` reports it, and the requester gets whatever data came.

    Parameters
    ----------
    width, tag_width : int
        Data path and tag bits of the memory port.
    outstanding : int
        Bursts each way without a response, at most; 2 to 64.
    """

    def __init__(self, width=32, tag_width=2, outstanding=8):
        mem = MemorySignature(width, tag_width)
        if not isinstance(outstanding, int) or not 2 <= outstanding <= 64:
            raise ValueError(f"Outstanding bursts must be 2 to 64, not {outstanding!r}")
        self.width, self.tag_width, self.outstanding = width, tag_width, outstanding
        super().__init__({"mem": In(mem), "axi": Out(AxiSignature(width)), "errors": Out(2)})

    # A command goes to the write side or the read side. Each cuts it at 4 KiB; a queue remembers
    # of each part whose it is and whether it is the burst's last.

    def elaborate(self, platform):
        m = Module()
        cmd, axi = self.mem.cmd, self.axi
        sides = [self._cut(m, 0, axi.ar), self._cut(m, 1, axi.aw)]
        m.d.comb += cmd.ready.eq(Mux(cmd.p.write, ~sides[1]["active"], ~sides[0]["active"]))
        self.sides = sides  # for the proofs' invariants
        self._read(m, sides[0])
        self._write(m, sides[1])
        return m

    def _cut(self, m, write, address):
        """Take commands of one direction and offer their parts at ``address``.

        Returns the side's signals: ``start`` is 1 when a part begins, which happens when ``go``
        allows it; ``length`` is its number of beats - 1; ``queue`` has tag and ``final`` of each.
        """
        name = ("read", "write")[write]
        cmd, low = self.mem.cmd, exact_log2(self.width // 8)
        active = Signal(name=f"{name}_active")
        addr = Signal(ADDR_WIDTH, name=f"{name}_addr")
        left = Signal(BEATS_WIDTH, name=f"{name}_left")
        tag = Signal(self.tag_width, name=f"{name}_tag")
        go, start = Signal(name=f"{name}_go"), Signal(name=f"{name}_start")
        final = Signal(name=f"{name}_final")
        length = Signal(BEATS_WIDTH, name=f"{name}_length")
        room = ~addr[low:BOUNDARY_LOG2]  # beats - 1 up to the boundary
        queue = SyncFIFO(width=1 + self.tag_width, depth=self.outstanding)
        m.submodules[f"{name}_queue"] = queue
        m.d.comb += [
            final.eq(left <= room),
            length.eq(Mux(final, left, room)),
            start.eq(active & go & queue.w_rdy & (~address.valid | address.ready)),
            queue.w_en.eq(start),
            queue.w_data[0].eq(final),
            queue.w_data[1:].eq(tag),
        ]
        with m.If(address.ready):
            m.d.sync += address.valid.eq(0)
        with m.If(start):
            m.d.sync += [
                address.valid.eq(1),
                address.p.addr.eq(addr),
                address.p.len.eq(length),
                active.eq(~final),
                addr[:BOUNDARY_LOG2].eq(0),
                addr[BOUNDARY_LOG2:].eq(addr[BOUNDARY_LOG2:] + 1),
                left.eq(left - length - 1),
            ]
        with m.If(cmd.valid & ~active & (cmd.p.write == write)):
            m.d.sync += [
                active.eq(1),
                addr.eq(cmd.p.addr),
                left.eq(cmd.p.beats),
                tag.eq(cmd.p.tag),
            ]
        return {
            **{"active": active, "addr": addr, "left": left, "go": go, "start": start},
            **{"length": length, "queue": queue},
        }

    def _read(self, m, side):
        queue, r, out = side["queue"], self.axi.r, self.mem.rdata
        m.d.comb += [
            side["go"].eq(1),
            out.valid.eq(r.valid & queue.r_rdy),
            out.p.data.eq(r.p.data),
            out.p.tag.eq(queue.r_data[1:]),
            out.p.last.eq(r.p.last & queue.r_data[0]),
            r.ready.eq(out.ready & queue.r_rdy),
            queue.r_en.eq(r.valid & r.ready & r.p.last),
            self.errors[1].eq(r.valid & r.ready & r.p.resp[1]),
        ]

    def _write(self, m, side):
        queue, w, b, done = side["queue"], self.axi.w, self.axi.b, self.mem.wdone
        moves = Signal()  # beats of the part that `left` counts may pass
        left = Signal(BEATS_WIDTH)
        self.part = moves, left
        ends = w.valid & w.ready & (left == 0)
        m.d.comb += [
            side["go"].eq(~moves | ends),
            w.valid.eq(self.mem.wdata.valid & moves),
            w.p.data.eq(self.mem.wdata.p.data),
            w.p.strb.eq(self.mem.wdata.p.strb),
            w.p.last.eq(left == 0),
            self.mem.wdata.ready.eq(w.ready & moves),
        ]
        with m.If(w.valid & w.ready):
            m.d.sync += left.eq(left - 1)
        with m.If(ends):
            m.d.sync += moves.eq(0)
        with m.If(side["start"]):
            m.d.sync += [moves.eq(1), left.eq(side["length"])]
        final = queue.r_data[0]
        m.d.comb += [
            done.valid.eq(b.valid & queue.r_rdy & final),
            done.p.tag.eq(queue.r_data[1:]),
            b.ready.eq(queue.r_rdy & (done.ready | ~final)),
            queue.r_en.eq(b.valid & b.ready),
            self.errors[0].eq(b.valid & b.ready & b.p.resp[1]),
        ]
