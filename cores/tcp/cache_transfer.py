"""Between the session cache and external memory: victims out, lines in, several at a time."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..memory import MemorySignature
from .line import (
    DESCRIPTOR_BITS,
    EXTENSION_BYTES,
    LINE_BYTES,
    at_rest,
    extension_layout,
    extension_used,
    line_layout,
    pack_line,
    rest_layout,
    unpack,
    whole,
)
from .record import descriptor_layout, peer_layout, record_layout

__all__ = ["CacheLineTransfer", "victim_layout"]


def victim_layout(config):
    """What leaves the cache, and where."""
    return data.StructLayout(
        {
            "dirty": 1,
            "number": config.session_bits,
            "rest": rest_layout(config),
            "extension": extension_layout(config),
            "peer": peer_layout(config),
        }
    )


class CacheLineTransfer(wiring.Component):
    """Replaces sessions in the cache: ``2**tag_width`` moves may be under way at a time.

    A *move* takes the session in one slot of the cache, its victim, to memory if it has changed,
    and another one into its place.

    ================  ===  ===================================================================
    ``idle``          Out  ``start`` would be heard
    ``start``         In   strobe: begin move ``move``, of session ``number``, which has been in
                           memory before if ``fetch``; ``victim`` is what has to go
    ``done``          Out  a bit a move: it is over; until its next ``start``
    ``address``       Out  descriptor of the victim that is asked for (slot, number), with ``ask``
    ``granted``       In   the descriptor RAM reads it in this cycle; ``descriptor`` comes 1 later
    ``quiet``         In   the cache's RAMs may be written in this cycle
    ``install``       Out  strobe: write ``line`` (if ``whole``) and ``extension`` at slot ``slot``
                           for session ``session``
    ``enter``         Out  strobe: write ``entry`` to the descriptor RAM at ``entry_address``
    ``mem``           Out  memory port
    ================  ===  ===================================================================

    Order: a move is ``done`` when what came in is in the cache, and every write of its victim is
    done in memory. So whoever keeps a slot closed while its move is under way never reads a line
    that is being written. Descriptors come in only when the victim's have gone out.

    Addresses: line n at ``config.state_base + 64 n``; the extensions, of 128 bytes, behind all
    lines. Latency: a move takes that of the memory and about 20 cycles at 64 bits, 60 with
    extensions; with ``fetch`` = 0, and nothing to write, 3. Back-pressure: ``idle`` falls while a
    victim is being written; ``rdata`` waits a few cycles for ``quiet``. Reset: idle; the memory
    must be reset, too.
    """

    def __init__(self, config, slots):
        self.config, self.slots = config, slots
        self.moves = 1 << config.tag_width
        self.slot_bits = (slots - 1).bit_length()
        s = config.session_bits
        self.numbers = [Signal(s, name=f"number{k}") for k in range(self.moves)]
        super().__init__(
            {
                "idle": Out(1),
                "start": In(1),
                "move": In(config.tag_width),
                "number": In(s),
                "fetch": In(1),
                "victim": In(victim_layout(config)),
                "done": Out(self.moves),
                "ask": Out(1),
                "address": Out(self.slot_bits + 2),
                "granted": In(1),
                "descriptor": In(descriptor_layout()),
                "quiet": In(1),
                "install": Out(1),
                "whole": Out(1),
                "session": Out(s),
                "slot": Out(self.slot_bits),
                "line": Out(line_layout(config)),
                "extension": Out(extension_layout(config)),
                "enter": Out(1),
                "entry_address": Out(self.slot_bits + 2),
                "entry": Out(descriptor_layout()),
                "mem": Out(MemorySignature(config.width, config.tag_width)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        n = self.moves
        self.filled, self.leaving = Signal(n), Signal(n)
        self.writes = [Signal(2, name=f"writes{k}") for k in range(n)]  # not yet done in memory
        self.wants, self.reads = Signal(n), Signal(n)  # the extension: to be read; being read
        for k in range(n):
            over = self.filled[k] & ~self.leaving[k] & (self.writes[k] == 0)
            m.d.comb += self.done[k].eq(over)
        self._commands(m)
        self._out(m)
        self._in(m)
        self._written(m)
        return m

    def _commands(self, m):
        """One command at a time: extensions to read come first."""
        cmd, wants = self.mem.cmd, self.wants & ~self.leaving
        self.offer = offer = Signal.like(cmd.payload)  # of the victim's side
        self.offered, self.taken = Signal(), Signal()
        free = Signal()
        m.d.comb += free.eq(~cmd.valid | cmd.ready)
        with m.If(cmd.ready):
            m.d.sync += cmd.valid.eq(0)
        with m.If(free & wants.any()):
            m.d.sync += [cmd.valid.eq(1), cmd.payload.write.eq(0)]
            m.d.sync += cmd.payload.beats.eq(self._beats(True) - 1)
            for k in reversed(range(self.moves)):
                with m.If(wants[k]):
                    m.d.sync += cmd.payload.tag.eq(k)
                    m.d.sync += cmd.payload.addr.eq(self._where(self.numbers[k], True))
                    m.d.sync += self.wants.eq(self.wants & ~(wants & -wants))
                    m.d.sync += self.reads.eq(self.reads | (wants & -wants))
        with m.Elif(free & self.offered):
            m.d.comb += self.taken.eq(1)
            m.d.sync += [cmd.valid.eq(1), cmd.payload.eq(offer)]

    def _beats(self, extension):
        used = extension_used(self.config) if extension else LINE_BYTES
        return used * 8 // self.config.width

    def _where(self, number, extension):
        base, size = self.config.state_base, LINE_BYTES
        if extension:
            base, size = base + LINE_BYTES * self.config.sessions, EXTENSION_BYTES
        return base + (number << (size.bit_length() - 1))

    def _out(self, m):
        """The victim's way: its registers go out word by word, its descriptors through one."""
        config, width, wdata = self.config, self.config.width, self.mem.wdata
        victim, fetch = Signal(victim_layout(config)), Signal()
        move, number = Signal(config.tag_width), Signal(config.session_bits)
        extended, beat = Signal(), Signal(4 + (width == 32))
        held = Signal(DESCRIPTOR_BITS)
        words = Value.cast(pack_line(config, victim.rest, victim.peer, extended))
        rest = Value.cast(victim.extension)
        per = DESCRIPTOR_BITS // width
        which = beat >> (per - 1).bit_length()  # descriptor that the beat is of
        part = beat[: (per - 1).bit_length()]
        bit = 1 << move
        self.out = victim, extended, move, beat  # for proofs
        m.d.comb += [
            self.address.eq(Cat(which[:2], victim.number[: self.slot_bits])),
            wdata.payload.strb.eq(~0),
            self.offer.tag.eq(move),
        ]
        with m.If(self.start):
            m.d.sync += [victim.eq(self.victim), fetch.eq(self.fetch), move.eq(self.move)]
            m.d.sync += [number.eq(self.number), beat.eq(0)]
            for k in range(self.moves):
                with m.If(self.move == k):
                    m.d.sync += [self.numbers[k].eq(self.number), self.filled[k].eq(0)]
                    m.d.sync += [self.leaving[k].eq(1), self.reads[k].eq(0)]

        def send(last):
            """A beat of the victim; on to the next one when it is taken."""
            m.d.comb += [wdata.valid.eq(1), wdata.payload.last.eq(last)]
            with m.If(wdata.ready):
                m.d.sync += beat.eq(beat + 1)

        self.blank = Signal()  # an empty record is to be put into the slot of `blank_move`
        self.blanked = Signal()
        self.blank_move = move
        with m.FSM() as self.out_fsm:
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                with m.If(self.start):
                    m.next = "JUDGE"
            with m.State("JUDGE"):
                record = whole(config, victim.rest, victim.extension)
                m.d.sync += extended.eq(~at_rest(data.View(record_layout(config), record)))
                m.next = "FETCH"
            with m.State("FETCH"):
                m.d.comb += [self.offered.eq(fetch), self.blank.eq(~fetch)]
                m.d.comb += self.offer.addr.eq(self._where(number, False))
                m.d.comb += self.offer.beats.eq(self._beats(False) - 1)
                with m.If(self.taken | self.blanked):
                    m.next = "LINE"
                    with m.If(~victim.dirty):
                        m.d.sync += self.leaving.eq(self.leaving & ~bit)
                        m.next = "IDLE"
            with m.State("LINE"):
                m.d.comb += [self.offered.eq(1), self.offer.write.eq(1)]
                m.d.comb += self.offer.addr.eq(self._where(victim.number, False))
                m.d.comb += self.offer.beats.eq(self._beats(False) - 1)
                with m.If(self.taken):
                    m.next = "LINE-DATA"
            with m.State("LINE-DATA"):
                with m.Switch(beat):
                    for k in range(self._beats(False)):
                        with m.Case(k):
                            m.d.comb += wdata.payload.data.eq(words.word_select(k, width))
                last = beat == self._beats(False) - 1
                send(last)
                with m.If(wdata.ready & last):
                    m.d.sync += beat.eq(0)
                    m.next = "EXTENSION"
                    with m.If(~extended):
                        m.d.sync += self.leaving.eq(self.leaving & ~bit)
                        m.next = "IDLE"
            with m.State("EXTENSION"):
                m.d.comb += [self.offered.eq(1), self.offer.write.eq(1)]
                m.d.comb += self.offer.addr.eq(self._where(victim.number, True))
                m.d.comb += self.offer.beats.eq(self._beats(True) - 1)
                with m.If(self.taken):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += self.ask.eq(1)
                with m.If(self.granted):
                    m.next = "HOLD"
            with m.State("HOLD"):
                m.d.sync += held.eq(Value.cast(self.descriptor))
                m.next = "DESCRIPTOR"
            with m.State("DESCRIPTOR"):
                with m.Switch(part):
                    for k in range(per):
                        with m.Case(k):
                            m.d.comb += wdata.payload.data.eq(held.word_select(k, width))
                send(0)
                with m.If(wdata.ready & (part == per - 1)):
                    m.next = "ASK"
                    with m.If(which == 3):
                        m.next = "REST"
            with m.State("REST"):
                with m.Switch(beat):
                    for k in range(4 * per, self._beats(True)):
                        with m.Case(k):
                            here = rest[(k - 4 * per) * width :][:width]
                            m.d.comb += wdata.payload.data.eq(here)
                last = beat == self._beats(True) - 1
                send(last)
                with m.If(wdata.ready & last):
                    m.d.sync += self.leaving.eq(self.leaving & ~bit)
                    m.next = "IDLE"

    def _written(self, m):
        """Counts a victim's writes that are not done yet."""
        done = self.mem.wdone
        begins = self.taken & self.offer.write
        m.d.comb += done.ready.eq(1)
        for k in range(self.moves):
            more = begins & (self.offer.tag == k)
            less = done.valid & (done.payload.tag == k)
            m.d.sync += self.writes[k].eq(self.writes[k] + more - less)

    def _in(self, m):
        """Lines and extensions in. Bursts are not mixed, so one set of registers is enough."""
        config, width, rdata = self.config, self.config.width, self.mem.rdata
        n = self._beats(False)
        per = DESCRIPTOR_BITS // width
        words = [Signal(width, name=f"word{k}") for k in range(n)]
        beat, have = Signal(4 + (width == 32)), Signal()
        move, second = Signal(config.tag_width), Signal()
        line = data.View(line_layout(config), Cat(words))
        number = Signal(config.session_bits)
        with m.Switch(Mux(have, move, rdata.payload.tag)):
            for k in range(self.moves):
                with m.Case(k):
                    m.d.comb += number.eq(self.numbers[k])
        extends = self.reads.bit_select(rdata.payload.tag, 1)
        takes = rdata.valid & rdata.ready
        which = beat >> (per - 1).bit_length()
        entry = extends & (which < 4)  # a beat of a descriptor
        entry_ends = entry & (beat[: (per - 1).bit_length()] == per - 1)
        m.d.comb += [
            rdata.ready.eq(~have & (~entry_ends | self.quiet)),
            self.enter.eq(takes & entry_ends),
            self.entry_address.eq(Cat(which[:2], number[: self.slot_bits])),
            Value.cast(self.entry).eq(Cat(*words[: per - 1], rdata.payload.data)),
            self.line.eq(line),
            self.session.eq(number),
            self.slot.eq(number),
            self.whole.eq(~second),
            self.install.eq(have & self.quiet),
            Value.cast(self.extension).eq(Mux(second, Cat(words), unpack(config, line.rest))),
        ]
        with m.If(takes):
            m.d.sync += [beat.eq(beat + 1), move.eq(rdata.payload.tag), second.eq(extends)]
            place = Mux(extends, Mux(entry, beat[: (per - 1).bit_length()], beat - 4 * per), beat)
            for k in range(n):
                with m.If(place == k):
                    m.d.sync += words[k].eq(rdata.payload.data)
            with m.If(rdata.payload.last):
                m.d.sync += [beat.eq(0), have.eq(1)]
        with m.Elif(self.blank & ~have & (beat == 0) & ~rdata.valid):
            m.d.comb += self.blanked.eq(1)
            m.d.sync += [word.eq(0) for word in words]
            m.d.sync += [have.eq(1), second.eq(0), move.eq(self.blank_move)]
        with m.If(self.install):
            m.d.sync += have.eq(0)
            for k in range(self.moves):
                with m.If(move == k):
                    more = ~second & line.extended
                    m.d.sync += [self.filled[k].eq(~more), self.wants[k].eq(more)]
