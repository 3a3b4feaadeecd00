"""Store-and-forward buffer for the write data of a memory port."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .buffers import StreamFifo
from .memory import BEATS_WIDTH, MemorySignature

__all__ = ["WriteBuffer"]


class WriteBuffer(wiring.Component):
    """Makes the write data of a slow requester prompt: a command goes on when its data are stored.

    =====  ===  ===========================================================
    ``i``  In   memory port of the requester, ``MemorySignature(width, tag_width)``
    ``o``  Out  the same port, of which each write command is prompt
    =====  ===  ===========================================================

    Parameters: ``width``, ``tag_width`` of both ports; ``beats``, length of the longest write
    burst, at least 2; by default the longest that a command can ask for. The store has two such.

    *Prompt*: in each cycle from the transfer of a write command at ``o`` to that of its last beat,
    ``o.wdata.valid`` is 1. So what follows ``o`` never waits for the requester, however slow it is,
    even if it stops in the middle of a burst: then the command is never offered.

    ``i`` takes a write command when the one before it has gone to ``o``, and then its data. Reads
    pass in the same cycle, also beside a write whose data are missing. A write whose data are
    complete goes before reads that are not yet offered, so that a read waits for one write of its
    own port at most. Responses pass unchanged.

    Latency: a write command is offered 2 cycles after its last beat, and after the last beat of the
    write before it has left; reads and responses 0. Throughput: a burst of n beats every n + 3
    cycles. ``o.wdata.last`` is counted here; that of ``i`` means nothing.
    Reset: empty; requester and memory must be reset with it. Bad input: more data than commanded
    wait for the next command; a burst longer than twice ``beats`` is never complete, and all later
    writes of the port wait for it.
    """

    def __init__(self, width=32, tag_width=2, beats=1 << BEATS_WIDTH):
        if not isinstance(beats, int) or not 2 <= beats <= 1 << BEATS_WIDTH:
            raise ValueError(f"Beats must be 2 to {1 << BEATS_WIDTH}, not {beats!r}")
        port = MemorySignature(width, tag_width)
        super().__init__({"i": In(port), "o": Out(port)})
        # No ports: for proofs.
        stored = data.StructLayout({"data": width, "strb": width // 8})
        self.store = StreamFifo(stored, 2 * beats, registered=True)
        self.held = Signal(port.cmd_layout)  # the write command that waits for its data
        self.busy, self.collecting = Signal(), Signal()  # there is one; data are missing
        self.complete = Signal()  # its data are stored and on the way to the store's output
        self.left = Signal(BEATS_WIDTH)  # of these: how many after the next one
        self.sending, self.to_send = Signal(), Signal(BEATS_WIDTH)  # the same at `o`
        self.read_held = Signal()  # a read was offered and not taken

    # The store's output register is filled three cycles after the last beat has come; the command
    # is offered in the second one, and its data are asked for in the third at the earliest.
    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = self.store
        i, o, held = self.i, self.o, self.held
        offers, accepted, granted = Signal(), Signal(), Signal()
        m.d.comb += [
            offers.eq(self.complete & ~self.sending & ~self.read_held),
            o.cmd.valid.eq(offers | (i.cmd.valid & ~i.cmd.payload.write)),
            o.cmd.payload.eq(Mux(offers, held, i.cmd.payload)),
            i.cmd.ready.eq(Mux(i.cmd.payload.write, ~self.busy, o.cmd.ready & ~offers)),
            accepted.eq(i.cmd.valid & i.cmd.payload.write & ~self.busy),
            granted.eq(offers & o.cmd.ready),
        ]
        m.d.sync += self.read_held.eq(o.cmd.valid & ~o.cmd.ready & ~offers)
        with m.If(granted):
            m.d.sync += [self.busy.eq(0), self.complete.eq(0)]
        with m.Else():
            m.d.sync += self.complete.eq(self.busy & ~self.collecting)
        with m.If(accepted):
            m.d.sync += [held.eq(i.cmd.payload), self.left.eq(i.cmd.payload.beats)]
            m.d.sync += [self.busy.eq(1), self.collecting.eq(1)]
        self._data(m, store, granted)
        for name in ("rdata", "wdone"):
            given, taken = getattr(o, name), getattr(i, name)
            m.d.comb += [taken.valid.eq(given.valid), given.ready.eq(taken.ready)]
            m.d.comb += taken.payload.eq(given.payload)
        return m

    def _data(self, m, store, granted):
        i, o = self.i.wdata, self.o.wdata
        puts, gets = Signal(), Signal()
        m.d.comb += [
            store.i.payload.data.eq(i.payload.data),
            store.i.payload.strb.eq(i.payload.strb),
            store.i.valid.eq(i.valid & self.collecting),
            i.ready.eq(store.i.ready & self.collecting),
            puts.eq(i.valid & i.ready),
            o.payload.data.eq(store.o.payload.data),
            o.payload.strb.eq(store.o.payload.strb),
            o.payload.last.eq(self.to_send == 0),
            o.valid.eq(store.o.valid & self.sending),
            store.o.ready.eq(o.ready & self.sending),
            gets.eq(o.valid & o.ready),
        ]
        with m.If(puts):
            m.d.sync += [self.left.eq(self.left - 1), self.collecting.eq(self.left != 0)]
        with m.If(granted):
            m.d.sync += [self.sending.eq(1), self.to_send.eq(self.held.beats)]
        with m.Elif(gets):
            m.d.sync += [self.to_send.eq(self.to_send - 1), self.sending.eq(self.to_send != 0)]
