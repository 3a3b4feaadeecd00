"""The memory port: how every core reaches external memory.

One port is a requester's view of a byte-addressed memory with a data path of ``n = width // 8``
bytes. It has four streams (directions as the requester sees them):

=========  ====  ====================================================================
member     dir   payload
=========  ====  ====================================================================
``cmd``    Out   ``write``, ``addr`` (bytes, a multiple of n), ``beats`` (count - 1),
                 ``tag``
``wdata``  Out   ``data``, ``strb`` (a bit per byte), ``last``
``rdata``  In    ``data``, ``tag``, ``last``
``wdone``  In    ``tag``
=========  ====  ====================================================================

Rules:

1. Every stream keeps the ready/valid rules 1 to 3 of :mod:`trebuchet.cores.stream`.
2. A command asks for a burst of ``beats + 1`` consecutive beats from ``addr`` on.
3. A write command's data are the next ``beats + 1`` beats of ``wdata``, in command order; ``last``
   marks the final one. Bytes that ``strb`` leaves out mean nothing and may change while a beat
   waits. The responder accepts a command without waiting for its data; it may
   hold data back until the command was accepted. A requester may offer the command first and
   the data after; one that has them at hand is *prompt*, and
   :class:`~trebuchet.cores.memory_arbiter.MemoryArbiter` buffers those of any other.
4. Read data of one burst come together, never interleaved with another burst's; ``last`` marks
   the final beat. Bursts with the same tag come in command order; with different tags in any
   order.
5. ``wdone`` reports one finished write burst. From that clock on, every read command accepted on
   *any* port sees the data. Same tag in command order; different tags in any order.
6. There is no order between a read and a write in flight at the same time: a requester
   that reads what it wrote waits for ``wdone`` first.
7. A requester must be able to take all the read data and every ``wdone`` it asked for, whatever
   its other streams do. It may hold ``rdata.ready`` low for a while, not for ever.
8. Addresses past the end of the memory wrap. Nothing hangs on a bad address.
"""

from amaranth import unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .stream import check_data_width

__all__ = ["ADDR_WIDTH", "BEATS_WIDTH", "MemorySignature"]

#: Width of a byte address. Boards with more than 4 GiB bank it outside the cores.
ADDR_WIDTH = 32
#: Width of ``cmd.beats``: a burst has 1 to 64 beats.
BEATS_WIDTH = 6


class MemorySignature(wiring.Signature):
    """Signature of a memory port, from the requester's side.

    Parameters
    ----------
    width : int
        Data path in bits, one of :data:`trebuchet.cores.stream.DATA_WIDTHS`.
    tag_width : int
        Bits of a tag; 0 or more. 0 makes every burst come back in order.
    """

    def __init__(self, width=32, tag_width=2):
        self.width = check_data_width(width)
        if not isinstance(tag_width, int) or tag_width < 0:
            raise ValueError(f"Tag width must be a non-negative integer, not {tag_width!r}")
        self.tag_width = tag_width
        self.cmd_layout = data.StructLayout(
            {
                "write": unsigned(1),
                "addr": unsigned(ADDR_WIDTH),
                "beats": unsigned(BEATS_WIDTH),
                "tag": unsigned(tag_width),
            }
        )
        self.wdata_layout = data.StructLayout(
            {"data": unsigned(width), "strb": unsigned(width // 8), "last": unsigned(1)}
        )
        self.rdata_layout = data.StructLayout(
            {"data": unsigned(width), "tag": unsigned(tag_width), "last": unsigned(1)}
        )
        self.wdone_layout = data.StructLayout({"tag": unsigned(tag_width)})
        super().__init__(
            {
                "cmd": Out(stream.Signature(self.cmd_layout)),
                "wdata": Out(stream.Signature(self.wdata_layout)),
                "rdata": In(stream.Signature(self.rdata_layout)),
                "wdone": In(stream.Signature(self.wdone_layout)),
            }
        )

    def __eq__(self, other):
        return (
            isinstance(other, MemorySignature)
            and self.width == other.width
            and self.tag_width == other.tag_width
        )

    def __repr__(self):
        return f"MemorySignature(width={self.width}, tag_width={self.tag_width})"
