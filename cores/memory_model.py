"""On-chip memory behind a memory port, with the latency and disorder of an external one."""

from amaranth.hdl import Cat, ClockSignal, Instance, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from .buffers import StreamFifo
from .memory import BEATS_WIDTH, MemorySignature

__all__ = ["EXTERNAL_RAM_VERILOG", "MemoryModel"]

#: The RAM that ``MemoryModel(external=True)`` instantiates; compile it beside the design.
EXTERNAL_RAM_VERILOG = """\
module trebuchet_ram #(parameter WIDTH = 32, parameter WORDS = 1024, parameter ABITS = 10) (
  input clk,
  input w_en, input [ABITS-1:0] w_addr, input [WIDTH-1:0] w_data, input [WIDTH/8-1:0] w_strb,
  input r_en, input [ABITS-1:0] r_addr, output reg [WIDTH-1:0] r_data
);
  reg [WIDTH-1:0] mem [0:WORDS-1] /* verilator public_flat_rw */;
  integer k;
  always @(posedge clk) begin
    if (w_en)
      for (k = 0; k < WIDTH/8; k = k + 1)
        if (w_strb[k]) mem[w_addr][8*k +: 8] <= w_data[8*k +: 8];
    if (r_en) r_data <= mem[r_addr];
  end
endmodule
"""


class MemoryModel(wiring.Component):
    """A memory of ``size`` bytes that answers like an external one.

    ========  ===  ============================================================
    ``port``  In   memory port (``MemorySignature(width, tag_width)``)
    ========  ===  ============================================================

    Parameters
    ----------
    size : int
        Bytes, a power of two and more than one beat. Addresses wrap at it.
    width, tag_width : int
        Of the port.
    latency : int
        Cycles from a read command to the first beat when nothing else is under way, at least 4;
        and from a write's last beat to ``wdone``, at least 2 (less is rounded up).
    outstanding : int
        Read bursts accepted and unfinished, at most; as many again of write bursts. At least 2.
    reorder : bool
        Read bursts of different tags overtake each other: each waits for up to 31 cycles more, by
        a 16-bit LFSR. Same-tag order stays. False: everything in order.
    seed : int
        Start of the LFSR, 1 to 65535.
    init : bytes
        Contents at power-up, zero beyond.
    external : bool
        True: the storage is an instance of the Verilog module in :data:`EXTERNAL_RAM_VERILOG`, for
        Verilator and for sizes whose contents a netlist cannot carry (``init`` must be empty).
        False: an Amaranth memory.

    One beat a cycle in each direction, without gap between bursts once several are outstanding.
    Back-pressure: ``cmd.ready`` falls while the table of that kind of command is full; ``wdata``
    waits for its command, then moves at once into storage. ``wdone`` comes in command order.
    Reset empties the tables and keeps the storage.
    """

    def __init__(
        self,
        size,
        width=32,
        tag_width=4,
        *,
        latency=40,
        outstanding=8,
        reorder=True,
        seed=1,
        init=b"",
        external=False,
    ):
        signature = MemorySignature(width, tag_width)
        n = width // 8
        if not isinstance(size, int) or size < 2 * n or size & (size - 1):
            raise ValueError(f"Memory size must be a power of two >= {2 * n} bytes, not {size!r}")
        if not isinstance(latency, int) or not 1 <= latency < 4096:
            raise ValueError(f"Latency must be 1 to 4095 cycles, not {latency!r}")
        if not isinstance(outstanding, int) or outstanding < 2:
            raise ValueError(f"Outstanding bursts must be an integer >= 2, not {outstanding!r}")
        if not 0 < seed < 1 << 16:
            raise ValueError(f"Seed must be 1 to 65535, not {seed!r}")
        if len(init) > size or (external and init):
            raise ValueError(f"Initial contents must fit {size} bytes and be empty when external")
        self.size, self.width, self.tag_width, self.n = size, width, tag_width, n
        self.latency, self.outstanding, self.reorder = latency, outstanding, reorder
        self.seed, self.init, self.external = seed, bytes(init), external
        super().__init__({"port": In(signature)})

    def _ram(self, m):
        """Storage; returns its (w_en, w_addr, w_data, w_strb, r_en, r_addr, r_data)."""
        words = self.size // self.n
        abits = (words - 1).bit_length()
        if self.external:
            widths = (1, abits, self.width, self.n, 1, abits, self.width)
            names = ("w_en", "w_addr", "w_data", "w_strb", "r_en", "r_addr", "r_data")
            wires = [Signal(w, name=f"ram_{k}") for w, k in zip(widths, names, strict=True)]
            m.submodules.ram = Instance(
                "trebuchet_ram",
                p_WIDTH=self.width,
                p_WORDS=words,
                p_ABITS=abits,
                i_clk=ClockSignal(),
                **{f"i_{k}": w for k, w in zip(names[:-1], wires[:-1], strict=True)},
                o_r_data=wires[-1],
            )
            return wires
        n = self.n
        init = [
            int.from_bytes(self.init[at : at + n], "little") for at in range(0, len(self.init), n)
        ]
        m.submodules.ram = ram = Memory(shape=self.width, depth=words, init=init)
        w, r = ram.write_port(granularity=8), ram.read_port()
        w_en, w_strb = Signal(name="ram_w_en"), Signal(n, name="ram_w_strb")
        m.d.comb += w.en.eq(Mux(w_en, w_strb, 0))
        return w_en, w.addr, w.data, w_strb, r.en, r.addr, r.data

    def elaborate(self, platform):
        m = Module()
        w_en, w_addr, w_data, w_strb, r_en, r_addr, r_data = self._ram(m)
        now = Signal(16)
        m.d.sync += now.eq(now + 1)
        write_ready = self._write_side(m, now, w_en, w_addr, w_data, w_strb)
        read_ready = self._read_side(m, r_en, r_addr, r_data)
        cmd = self.port.cmd
        m.d.comb += cmd.ready.eq(Mux(cmd.payload.write, write_ready, read_ready))
        return m

    def _word(self, addr):
        """Byte address to index of a word."""
        return addr[(self.n - 1).bit_length() :][: (self.size // self.n - 1).bit_length()]

    # Commands wait in one queue, finished bursts in another, with the time they finished.
    def _write_side(self, m, now, w_en, w_addr, w_data, w_strb):
        port, cmd = self.port, self.port.cmd
        command = data.StructLayout({"word": len(w_addr), "tag": self.tag_width})
        finished = data.StructLayout({"time": len(now), "tag": self.tag_width})
        m.submodules.commands = commands = StreamFifo(command, self.outstanding)
        m.submodules.finished = done = StreamFifo(finished, self.outstanding)
        offset = Signal(BEATS_WIDTH)
        self.now, self.offset = now, offset  # for the invariants of its proof, as those below
        current = commands.o.payload
        m.d.comb += [
            commands.i.valid.eq(cmd.valid & cmd.payload.write),
            commands.i.payload.word.eq(self._word(cmd.payload.addr)),
            commands.i.payload.tag.eq(cmd.payload.tag),
            port.wdata.ready.eq(commands.o.valid & done.i.ready),
            commands.o.ready.eq(w_en & port.wdata.payload.last),
            done.i.valid.eq(commands.o.ready),
            done.i.payload.tag.eq(current.tag),
            done.i.payload.time.eq(now),
            w_en.eq(port.wdata.valid & port.wdata.ready),
            w_addr.eq(current.word + offset),
            w_data.eq(port.wdata.payload.data),
            w_strb.eq(port.wdata.payload.strb),
        ]
        with m.If(w_en):
            m.d.sync += offset.eq(Mux(port.wdata.payload.last, 0, offset + 1))
        # Once due, a burst stays due, however far the clock runs on while `wdone` is stalled.
        age, due = Signal.like(now), Signal()
        m.d.comb += [
            age.eq(now - done.o.payload.time),
            port.wdone.valid.eq(done.o.valid & (due | (age >= self.latency))),
            port.wdone.payload.tag.eq(done.o.payload.tag),
            done.o.ready.eq(port.wdone.valid & port.wdone.ready),
        ]
        m.d.sync += due.eq(port.wdone.valid & ~port.wdone.ready)
        self.overdue = due
        return commands.i.ready

    # A table of bursts. Each counts down its own delay and remembers which older entries it must
    # not overtake. A due one moves to `queued`, and from there to `active`, which reads a word a
    # cycle; the stage between hides the search from the data path.
    def _read_side(self, m, r_en, r_addr, r_data):
        port, cmd, count = self.port, self.port.cmd, self.outstanding
        burst = data.StructLayout(
            {"word": len(r_addr), "beats": BEATS_WIDTH, "tag": self.tag_width}
        )
        table = [Signal(burst, name=f"burst{k}") for k in range(count)]
        used, due = Signal(count), Signal(count)
        delay = [Signal(13, name=f"delay{k}") for k in range(count)]
        after = [Signal(count, name=f"after{k}") for k in range(count)]
        leaving = Signal(count)
        room, arrives, slot = Signal(), Signal(), Signal(range(count))
        lfsr = Signal(16, init=self.seed)
        m.d.sync += lfsr.eq(Cat(lfsr[15] ^ lfsr[13] ^ lfsr[12] ^ lfsr[10], lfsr[:15]))
        m.d.comb += [room.eq(~used.all()), arrives.eq(cmd.valid & ~cmd.payload.write & room)]
        for k in reversed(range(count)):
            with m.If(~used[k]):
                m.d.comb += slot.eq(k)
            m.d.comb += due[k].eq(used[k] & (delay[k] == 0) & (after[k] == 0))
            with m.If(delay[k] != 0):
                m.d.sync += delay[k].eq(delay[k] - 1)
            m.d.sync += after[k].eq(after[k] & ~leaving)

        older = Cat(
            used[k] & (1 if not self.reorder else table[k].tag == cmd.payload.tag)
            for k in range(count)
        )
        extra = Mux(lfsr[5], lfsr[:5], 0) if self.reorder else 0
        with m.If(arrives):
            with m.Switch(slot):
                for k in range(count):
                    with m.Case(k):
                        m.d.sync += [
                            used[k].eq(1),
                            table[k].word.eq(self._word(cmd.payload.addr)),
                            table[k].beats.eq(cmd.payload.beats),
                            table[k].tag.eq(cmd.payload.tag),
                            delay[k].eq(max(0, self.latency - 4) + extra),
                            after[k].eq(older & ~leaving),
                        ]

        queued, queued_valid, next_burst = Signal(burst), Signal(), Signal(burst)
        active, active_valid, left = Signal(burst), Signal(), Signal(BEATS_WIDTH)
        take, step, ends = Signal(), Signal(), Signal()
        self.waiting, self.reading = (table, used, after), (queued, queued_valid, active, left)
        self.busy, self.delays = active_valid, delay
        for k in reversed(range(count)):
            with m.If(due[k]):
                m.d.comb += [next_burst.eq(table[k]), leaving.eq(Mux(take, 1 << k, 0))]
        m.d.comb += [
            step.eq(~port.rdata.valid | port.rdata.ready),
            ends.eq(~active_valid | (step & (left == 0))),
            take.eq(due.any() & (~queued_valid | ends)),
            r_en.eq(step),
            r_addr.eq(active.word),
            port.rdata.payload.data.eq(r_data),
        ]
        for k in range(count):
            with m.If(leaving[k]):
                m.d.sync += used[k].eq(0)
        with m.If(take):
            m.d.sync += [queued.eq(next_burst), queued_valid.eq(1)]
        with m.Elif(ends):
            m.d.sync += queued_valid.eq(0)
        with m.If(ends):
            m.d.sync += [active.eq(queued), left.eq(queued.beats), active_valid.eq(queued_valid)]
        with m.Elif(step):
            m.d.sync += [active.word.eq(active.word + 1), left.eq(left - 1)]
        with m.If(step):
            m.d.sync += [
                port.rdata.valid.eq(active_valid),
                port.rdata.payload.tag.eq(active.tag),
                port.rdata.payload.last.eq(left == 0),
            ]
        return room
