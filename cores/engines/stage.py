"""An engine in the way of a packet stream: with a switch, a reset, a watchdog and counters."""

from amaranth import Module, Mux, ResetInserter, Signal
from amaranth.hdl import Cat
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature
from ..stream import PacketSignature
from .contract import EngineLimits, check_body, engine_block, limits_of

__all__ = ["EngineStage"]

#: What is counted of packets that leave, by the register's name.
ENGINE_EVENTS = ("packets", "errors", "aborted")


class EngineStage(wiring.Component):
    """Puts a body (:mod:`~trebuchet.cores.engines.contract`) into any packet stream.

    ==========  ====  ============  ============================================================
    member      dir   shape         meaning
    ==========  ====  ============  ============================================================
    ``i``       In    packet        what the body works on, such as the data of a drive
    ``o``       Out   packet        what it makes of that
    ``enable``  In    1             0: as if the register ``enable`` were 0
    ``csr``     In    CsrSignature  ``block``: the standard registers, then the body's own
    ==========  ====  ============  ============================================================

    The stage keeps rules 1 and 2 of the contract itself, whatever is written to its registers,
    whenever, and whatever the body does: one packet leaves for each that comes, in order. With a
    body that keeps the contract it keeps rule 3, too, so that stages may follow each other.

    *Registers* ``rw``, and the switch, reach the body between packets only: when one of them
    changes, the next packet waits until all at work have left. So a packet is worked on with
    the values of one moment. One that begins within 2 cycles of the change may have the old ones.

    *Bypass*: while ``enable`` is 0 packets pass as they are, and the body is given nothing.

    *Abort*: a write of 1 to ``reset`` resets the body. A packet that is coming in is swallowed to
    its end, so its producer must end it (rule 6). Each packet that was at work leaves all the
    same: one of which beats have left ends with one of ``error``, any other is a single beat with
    ``error``. Then the next packet is taken.

    *Faults* are aborts that the stage makes itself: when the body is due and does nothing for
    ``patience`` cycles, and when it offers what rule 2 does not allow. A packet without an end is
    no fault that the stage finds.

    *Latency*: the body's and 1 cycle; in bypass 1. *Throughput*: the body's; in bypass a beat a
    cycle. *Back-pressure*: ``o`` comes from registers, ``i.ready`` from the body. *Reset*: empty,
    registers as declared. *Bad input*: as the contract says, from both sides.

    Parameters
    ----------
    body : Component
        The body.
    width : int
        Data path in bits.
    name : str
        Of the register block.
    most : int
        Packets at work, at most; the next one waits.
    patience : int
        Cycles; more than ``limits.latency`` of the body.
    extra : sequence of Register
        Registers of whoever uses the stage, ``ro``: it is given their values by ``extras``, a dict.
    """

    def __init__(self, body, width=32, name="engine", *, most=255, patience=1 << 16, extra=()):
        own = check_body(body, width)
        latency = limits_of(body).latency or 0
        if type(most) is not int or most < 1:
            raise ValueError(f"Packets at work must be an integer of at least 1, not {most!r}")
        if type(patience) is not int or patience <= latency:
            raise ValueError(
                f"Patience must be an integer above the body's latency of {latency}, "
                f"not {patience!r}"
            )
        self.body, self.width, self.most, self.patience = body, width, most, patience
        self.limits = EngineLimits()
        self.verilog_files = getattr(body, "verilog_files", ())
        self.block = engine_block(name, own, extra)
        self.extras = {register.name: Signal(register.width) for register in extra}
        self.body_registers = own.registers if own is not None else ()
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "enable": In(1, init=1),
                "csr": In(CsrSignature(self.block)),
            }
        )
        # No ports: for the proof's invariants.
        self.count = Signal(range(most + 1))  # packets begun, whose last beat is not in `o` yet
        self.inside = Signal()  # one of them, the last, is coming in
        self.begins = Signal(init=1)  # the next beat in `o` is a first one
        self.flush, self.on = Signal(), Signal(init=1)
        self.stray = Signal()  # the body gives a beat out of turn
        self.changed, self.waited = Signal(), Signal(range(patience + 1))
        self.events = Signal(data.StructLayout(dict.fromkeys(ENGINE_EVENTS, 1)))

    # A packet is counted when it is offered to the body, and forgotten when its last beat is in the
    # register before `o`. In a flush the body is in reset; the rest of a packet is swallowed, and
    # the register is given a last beat for each packet that is whole. Nothing that the body does
    # can unsettle this: it is not asked for `first`, and what it gives out of turn is not taken.
    def elaborate(self, platform):
        m = Module()
        m.submodules.body = ResetInserter(self.flush)(self.body)
        i, body = self.i, self.body
        room, gate, starts, whole, cut = Signal(), Signal(), Signal(), Signal(), Signal()
        admits = ~self.changed & ~self.flush & (self.count != self.most)
        m.d.comb += [
            room.eq(~self.o.valid | self.o.ready),
            starts.eq(i.valid & ~self.inside & admits),
            gate.eq((self.inside & ~self.flush) | starts),
            whole.eq(self.count > self.inside),
            body.i.valid.eq(i.valid & gate & self.on),
            body.i.p.eq(i.p),
            body.o.ready.eq(room & self.on & ~self.flush),
            i.ready.eq(Mux(self.flush, self.inside, gate & Mux(self.on, body.i.ready, room))),
        ]
        with m.If(i.valid & (gate | self.inside)):
            m.d.sync += self.inside.eq(~(i.ready & i.p.last))
        ends = self._give(m, room, gate, starts, whole)
        m.d.sync += self.count.eq(self.count + starts - ends)
        fault = self._watch(m, whole) | self.stray
        m.d.comb += cut.eq(self.csr.reset | fault)
        with m.If(cut & ~self.flush):
            m.d.sync += self.flush.eq(1)
        with m.Elif(self.count == 0):
            m.d.sync += self.flush.eq(0)
        self._settle(m)
        self._count(m, faults=fault & ~self.flush)
        return m

    def _give(self, m, room, gate, starts, whole):
        """Fill the register before ``o``; return "a last beat goes there"."""
        i, o, body = self.i, self.o, self.body
        beat, offers, takes, aborts = Signal.like(i.payload), Signal(), Signal(), Signal()
        ends, passes_last, owed = Signal(), Signal(), Signal()
        m.d.comb += [
            passes_last.eq(i.valid & i.ready & i.p.last & gate),
            # A beat of a packet that is whole, or of the one that comes in but for an early end.
            owed.eq(whole | ((self.inside | starts) & ~(room & beat.last & ~passes_last))),
            beat.eq(Mux(self.on, body.o.p, i.p)),
            offers.eq(Mux(self.on, body.o.valid, i.valid & gate) & ~self.flush),
            self.stray.eq(offers & ~owed),
            takes.eq(offers & room & owed),
            aborts.eq(self.flush & room & whole),
            ends.eq(aborts | (takes & beat.last)),
        ]
        with m.If(room):
            m.d.sync += o.valid.eq(takes | aborts)
        with m.If(takes):
            m.d.sync += [
                o.p.eq(beat),
                o.p.empty.eq(Mux(beat.last, beat.empty, 0)),
                o.p.error.eq(beat.last & beat.error),
            ]
        with m.If(aborts):
            m.d.sync += [o.p.last.eq(1), o.p.empty.eq(0), o.p.error.eq(1)]
        with m.If(takes | aborts):
            m.d.sync += [o.p.first.eq(self.begins), self.begins.eq(aborts | beat.last)]
        m.d.comb += [
            self.events.packets.eq(ends),
            self.events.errors.eq(aborts | (takes & beat.last & beat.error)),
            self.events.aborted.eq(aborts),
        ]
        return ends

    def _watch(self, m, whole):
        """Whether the body has done nothing for too long, although it was due."""
        i, o, stuck = self.body.i, self.body.o, Signal()
        m.d.comb += stuck.eq(
            self.on & ~self.flush & (i.valid | whole) & ~(i.valid & i.ready) & ~o.valid
        )
        m.d.sync += self.waited.eq(Mux(stuck, self.waited + 1, 0))
        return self.waited == self.patience

    def _settle(self, m):
        """Join the body's registers to ours; those that are written, between packets."""
        wanted, held = [self.csr.enable & self.enable], [self.on]
        for register in self.body_registers:
            ours = getattr(self.csr, register.name)
            theirs = getattr(self.body.csr, register.name)
            if register.access == "rw":
                value = Signal(register.width, name=register.name, init=register.reset)
                m.d.comb += theirs.eq(value)
                wanted.append(ours)
                held.append(value)
            elif register.access == "stb":
                m.d.comb += theirs.eq(ours)
            else:
                m.d.comb += ours.eq(theirs)
            if register.access == "w1c":
                clear = f"{register.name}_clear"
                m.d.comb += getattr(self.body.csr, clear).eq(getattr(self.csr, clear))
        m.d.sync += self.changed.eq(Cat(wanted) != Cat(held))
        with m.If(self.changed & (self.count == 0)):
            m.d.sync += Cat(held).eq(Cat(wanted))

    def _count(self, m, faults):
        csr = self.csr
        m.d.comb += csr.state.eq(Cat((self.count != 0) | self.o.valid, ~self.on))
        for name, signal in self.extras.items():
            m.d.comb += getattr(csr, name).eq(signal)
        for name, strobe in (*((n, self.events[n]) for n in ENGINE_EVENTS), ("faults", faults)):
            # The adder begins at a register.
            now = Signal(name=f"{name}_now")
            m.d.sync += [now.eq(strobe), getattr(csr, name).eq(getattr(csr, name) + now)]
