"""The session index's way to memory: changes, one after the other, and which are under way."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ..memory import ADDR_WIDTH, MemorySignature
from .index_layout import place_layout

__all__ = ["Change", "IndexWriter", "change_layout"]

#: Changes whose end memory has not reported yet, at most. A power of two.
UNDER_WAY = 4


class Change(enum.IntEnum, shape=2):
    """What is written."""

    CLEAR = 0  # zeros into the bucket with the number ``bucket``
    INSERT = 1  # an entry at ``where``
    REMOVE = 2  # nobody at ``where``
    SPILL = 3  # an entry of the overflow list, number ``index``


def change_layout(layout):
    """One change. Not all fields mean something for each kind."""
    return data.StructLayout(
        {
            "kind": Change,
            "bucket": layout.bucket_bits + 1,
            "where": place_layout(),
            "index": layout.session_bits,
            "code": 64,
            "number": layout.session_bits,
            "frees": 1,  # when it is done, ``freed`` is a free number
            "freed": layout.session_bits,
        }
    )


class IndexWriter(wiring.Component):
    """Clears the buckets, then writes changes and remembers those under way.

    ============  ===  ======================================================================
    ``go``        In   memory can be written: clearing waits for it, and it stays
    ``change``    In   stream of :func:`change_layout`
    ``left``      In   with ``right``: buckets that somebody wants to read,
    ``busy``      Out  but a change of one of them is under way, or of the overflow list
    ``freed``     Out  stream of the numbers that changes free, each after its ``wdone``
    ``ready``     Out  0 while the buckets are being cleared after reset
    ``mem``       Out  memory port; it only writes
    ============  ===  ======================================================================

    Parameters: ``layout``; ``width`` of the port, 32 or 64.

    ``change.ready`` stays until a change was taken, which counts for ``busy`` from the cycle after.
    An insertion is a burst from the bucket's word 0 to the entry; strobes leave out all but the
    entry and its byte of word 0. So nothing has to be read to be written. A removal is one word.
    Reset: clears all buckets once ``go`` is 1, which takes as long as memory takes to write them.
    """

    def __init__(self, layout, width=64):
        self.layout, self.width = layout, width
        super().__init__(
            {
                "go": In(1, init=1),
                "change": In(stream.Signature(change_layout(layout))),
                "left": In(layout.bucket_bits),
                "right": In(layout.bucket_bits),
                "busy": Out(1),
                "freed": Out(stream.Signature(layout.session_bits)),
                "ready": Out(1),
                "mem": Out(MemorySignature(width, 0)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout, mem = self.layout, self.mem
        self.now = now = Signal(change_layout(layout))  # what is being written; CLEAR at reset
        bucket, cleared = Signal(layout.bucket_bits + 2), Signal(layout.bucket_bits + 2)
        pushed = self.change.valid & self.change.ready
        room = self._ring(m, pushed)
        kind, place = now.kind, now.where.index
        m.d.comb += [self.ready.eq(cleared[-1]), mem.cmd.payload.write.eq(1)]
        at, words = Signal(ADDR_WIDTH), Signal(4)
        m.d.comb += [at.eq(layout.address(now.bucket)), words.eq(layout.bucket_words)]
        with m.Switch(kind):
            with m.Case(Change.INSERT):
                m.d.comb += words.eq(place + 2)
            with m.Case(Change.REMOVE):
                m.d.comb += at.eq(layout.address(now.bucket) + ((place + 1) << 3))
                m.d.comb += words.eq(1)
            with m.Case(Change.SPILL):
                m.d.comb += [at.eq(layout.spill_base + (now.index << 4)), words.eq(2)]
        split = 64 // self.width  # beats of a word
        m.d.comb += mem.cmd.payload.addr.eq(at)
        m.d.comb += mem.cmd.payload.beats.eq(words * split - 1)
        sent = self._data(m, words, split)
        with m.FSM(init="CLEAR") as self.fsm:
            with m.State("CLEAR"):
                m.d.sync += now.bucket.eq(bucket)
                with m.If(self.go):
                    m.next = "COMMAND"
                with m.If(bucket[-1]):
                    m.next = "IDLE"
            with m.State("IDLE"):
                m.d.comb += self.change.ready.eq(room & self.ready)
                m.d.sync += now.eq(self.change.payload)
                with m.If(pushed):
                    m.next = "COMMAND"
            with m.State("COMMAND"):
                m.d.comb += mem.cmd.valid.eq(1)
                with m.If(mem.cmd.ready):
                    m.next = "DATA"
            with m.State("DATA"):
                m.d.comb += mem.wdata.valid.eq(1)
                with m.If(sent):
                    m.next = "IDLE"
                    with m.If(kind == Change.CLEAR):
                        m.d.sync += bucket.eq(bucket + 1)
                        m.next = "CLEAR"
        with m.If(mem.wdone.valid & mem.wdone.ready & ~self.ready):
            m.d.sync += cleared.eq(cleared + 1)
        return m

    def _data(self, m, words, split):
        """Write data of the change; whether the last beat goes."""
        layout, now, data_out = self.layout, self.now, self.mem.wdata.payload
        kind, place = now.kind, now.where.index
        beat = Signal(range(layout.bucket_words * split))
        word, strb, number = Signal(64), Signal(8), beat[(split - 1) :]
        rest = Signal(64 - layout.bucket_bits)
        final = number == (words - 1)[: len(number)]
        m.d.comb += rest.eq(layout.rest(now.code, now.where.side))
        with m.Switch(kind):
            with m.Case(Change.INSERT):
                m.d.comb += word.eq(Cat(1, now.number, rest[: layout.low_bits]))
                m.d.comb += strb.eq(Mux(final, 0xFF, 0))
                with m.If(number == 0):
                    high = Cat(rest[layout.low_bits :], Const(0, 8 - layout.high_bits))
                    m.d.comb += [word.eq(high.replicate(8)), strb.eq(1 << (place + 1))]
            with m.Case(Change.SPILL):
                m.d.comb += [word.eq(Mux(final, now.number, now.code)), strb.eq(0xFF)]
            with m.Default():
                m.d.comb += strb.eq(0xFF)
        half = beat[0] if split == 2 else 0
        m.d.comb += [
            data_out.data.eq(word >> (32 * half) if split == 2 else word),
            data_out.strb.eq(strb >> (4 * half) if split == 2 else strb),
            data_out.last.eq(final & (half == split - 1)),
        ]
        goes = self.mem.wdata.valid & self.mem.wdata.ready
        with m.If(goes):
            m.d.sync += beat.eq(Mux(data_out.last, 0, beat + 1))
        return goes & data_out.last

    def _ring(self, m, pushed):
        """The changes under way, oldest at ``tail``; whether there is room for one more."""
        layout, change = self.layout, self.change.payload
        entry = data.StructLayout(
            {
                "bucket": layout.bucket_bits + 1,
                "spill": 1,
                "frees": 1,
                "freed": layout.session_bits,
            }
        )
        self.ring = ring = [Signal(entry, name=f"under_way_{k}") for k in range(UNDER_WAY)]
        self.taken = taken = Signal(UNDER_WAY)
        head, tail = Signal(range(UNDER_WAY)), Signal(range(UNDER_WAY))
        oldest = Signal(entry)
        clashes = []
        for k, slot in enumerate(ring):
            with m.If(pushed & (head == k)):
                m.d.sync += [slot.bucket.eq(change.bucket), slot.frees.eq(change.frees)]
                m.d.sync += [slot.spill.eq(change.kind == Change.SPILL), taken[k].eq(1)]
                m.d.sync += slot.freed.eq(change.freed)
            with m.If(tail == k):
                m.d.comb += oldest.eq(slot)
            same = slot.bucket == Mux(slot.bucket[-1], Cat(self.right, 1), Cat(self.left, 0))
            clashes.append(taken[k] & (slot.spill | same))
        done = self.mem.wdone.valid & self.mem.wdone.ready & self.ready
        m.d.comb += [
            self.busy.eq(Cat(clashes).any()),
            self.freed.valid.eq(self.mem.wdone.valid & self.ready & oldest.frees),
            self.freed.payload.eq(oldest.freed),
            self.mem.wdone.ready.eq(~self.ready | ~oldest.frees | self.freed.ready),
        ]
        m.d.sync += [head.eq(head + pushed), tail.eq(tail + done)]
        for k in range(UNDER_WAY):
            with m.If(done & (tail == k)):
                m.d.sync += taken[k].eq(0)
        return ~taken.all()
