"""Data lines of an SD bus: blocks in and out, CRC16 on each line."""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..drive.port import SECTOR

__all__ = ["SdData"]

#: Bytes of the status that CMD6 is answered with.
SWITCH_STATUS = 64


class SdData(wiring.Component):
    """Receives and sends blocks, one after the other, and reports each.

    ============  ===  =====  ==================================================================
    member        dir  bits   meaning
    ============  ===  =====  ==================================================================
    ``receive``   In   1      while 1: receive blocks; taking it away ends what is on its way
    ``switch``    In   1      blocks are of 64 bytes, not 512; their words are not put out
    ``send``      In   1      send one block; stays 1 until ``done``, else the block is abandoned
    ``permit``    In   1      there is room for a block to receive; else the clock stops
    ``done``      Out  1      pulse: a block has ended
    ``good``      Out  1      with ``done``: received with correct CRCs and end bits, or sent and
                              acknowledged as written (status 010, busy over)
    ``begins``    Out  1      pulse: the start bit of a block is sent
    ``clear``     Out  1      the last sample of DAT0 was 1: the card is not busy
    ``high``      Out  1      the switch status said that high speed was selected
    ``w_en``      Out  1      pulse: ``word`` was received
    ``w_left``    Out         words of the block that follow it
    ``word``      Out  width  the first byte in its bits 7..0
    ``o_valid``   In   1      ``o_word`` is the next word to send
    ``o_word``    In   width  taken with ``o_ready``
    ``o_ready``   Out  1      pulse
    ``stop``      Out  1      the clock must not rise: no word to send, or no ``permit``
    ============  ===  =====  ==================================================================

    ``fall``, ``sample``: pulses of :class:`~.clock.SdClock`; ``dat_i``: the registered pins;
    ``dat_o``, ``dat_oe``. A block that begins while the response of its command is still coming is
    received as any other. Time-outs are the sequencer's. Source: SD Physical Layer Simplified
    Specification, 3.6.1 (formats), 4.5 (CRC16), 4.3.4 (CRC status), 4.12 (timing).

    Parameters
    ----------
    width : int
        Bits of a word.
    lines : int
        Data lines, 1 or 4.
    """

    def __init__(self, width=32, lines=4):
        if lines not in (1, 4):
            raise ValueError(f"Data lines must be 1 or 4, not {lines!r}")
        self.width, self.lines = width, lines
        super().__init__(
            {
                "receive": In(1),
                "switch": In(1),
                "send": In(1),
                "permit": In(1),
                "done": Out(1),
                "good": Out(1),
                "begins": Out(1),
                "clear": Out(1),
                "high": Out(1),
                "w_en": Out(1),
                "w_left": Out((SECTOR * 8 // width).bit_length() - 1),
                "word": Out(width),
                "o_valid": In(1),
                "o_word": In(width),
                "o_ready": Out(1),
                "stop": Out(1),
                "fall": In(1),
                "sample": In(1),
                "dat_i": In(lines),
                "dat_o": Out(lines, init=(1 << lines) - 1),
                "dat_oe": Out(1),
            }
        )

    # Received and sent symbols pass the same CRC registers. A received CRC is compared symbol by
    # symbol with theirs, as they shift out, which is how a CRC is sent, too. `count` is of the
    # symbols left of a block; all other counts use its lower bits, each from all ones.
    def elaborate(self, platform):
        m = Module()
        lines = self.lines
        self.count = count = Signal(range(SECTOR * 8 // lines), init=SECTOR * 8 // lines - 1)
        self.outgoing, self.loaded = Signal(lines), Signal()
        self.crc = crc = [Signal(16, name=f"crc{i}") for i in range(lines)]
        self.symbol, self.step, self.fresh = Signal(lines), Signal(), Signal()
        self.tail, self.differs = Signal(lines), Signal()
        self.block_ends = Signal()
        m.d.comb += self.tail.eq(Cat(register[15] for register in crc))
        for register, symbol in zip(crc, self.symbol, strict=True):
            fb = symbol ^ register[15]
            with m.If(self.fresh):
                m.d.sync += register.eq(0)
            with m.Elif(self.step):
                m.d.sync += register.eq(
                    Cat(fb, register[:4], register[4] ^ fb, register[5:11], register[11] ^ fb,
                        register[12:15])
                )  # fmt: skip
        with m.If(self.sample):
            m.d.sync += self.clear.eq(self.dat_i[0])
        status = (SWITCH_STATUS * 8 // lines).bit_length() - 1  # bits of its count
        m.d.comb += self.block_ends.eq(
            (count[:status] == 0) & (self.switch | (count[status:] == 0))
        )
        with m.If(self.fresh):
            m.d.sync += count.eq(count.init)
        with m.Elif(self.step):
            m.d.sync += count.eq(count - 1)
        with m.FSM() as self.fsm:
            self._receive(m)
            self._send(m)
        self._words(m)
        return m

    def _receive(self, m):
        with m.State("IDLE"):
            m.d.comb += [self.fresh.eq(1), self.stop.eq(self.receive & ~self.permit)]
            m.d.sync += self.differs.eq(0)
            with m.If(self.send):
                m.next = "SEND_GAP"
            with m.Elif(self.receive & self.sample & ~self.dat_i[0]):
                m.next = "DATA"
        with m.State("DATA"):
            m.d.comb += [self.symbol.eq(self.dat_i), self.stop.eq(~self.permit)]
            m.d.comb += self.step.eq(self.sample)
            with m.If(self.sample & self.block_ends):
                m.next = "CRC"
            with m.If(~self.receive):
                m.next = "IDLE"
        with m.State("CRC"):
            m.d.comb += [self.symbol.eq(self.tail), self.step.eq(self.sample)]
            with m.If(self.sample):
                m.d.sync += self.differs.eq(self.differs | (self.tail != self.dat_i))
                with m.If(self.count[:4] == 0):
                    m.next = "END"
            with m.If(~self.receive):
                m.next = "IDLE"
        with m.State("END"):
            m.d.comb += self.good.eq(~self.differs & self.dat_i.all())
            with m.If(self.sample):
                m.d.comb += self.done.eq(1)
                m.next = "IDLE"
            with m.If(~self.receive):
                m.next = "IDLE"

    def _send(self, m):
        count, dat_o = self.count, self.dat_o
        ones = (1 << self.lines) - 1
        status = Signal(3)
        with m.State("SEND_GAP"):  # N_WR: at least two clocks after response or busy
            with m.If(self.fall & self.loaded):
                m.d.comb += self.step.eq(1)
                with m.If(count[:2] == 0):
                    m.d.comb += [self.fresh.eq(1), self.begins.eq(1)]
                    m.d.sync += [dat_o.eq(0), self.dat_oe.eq(1)]
                    m.next = "SEND_DATA"
            self._abandon(m)
        with m.State("SEND_DATA"):
            m.d.comb += [self.symbol.eq(self.outgoing), self.stop.eq(~self.loaded)]
            m.d.comb += self.step.eq(self.fall)
            with m.If(self.fall):
                m.d.sync += dat_o.eq(self.outgoing)
                with m.If(self.block_ends):
                    m.next = "SEND_CRC"
            self._abandon(m)
        with m.State("SEND_CRC"):
            m.d.comb += [self.symbol.eq(self.tail), self.step.eq(self.fall)]
            with m.If(self.fall):
                m.d.sync += dat_o.eq(self.tail)
                with m.If(count[:4] == 0):
                    m.next = "SEND_END"
            self._abandon(m)
        with m.State("SEND_END"):
            with m.If(self.fall):
                m.d.sync += dat_o.eq(ones)
                m.next = "RELEASE"
            self._abandon(m)
        with m.State("RELEASE"):
            with m.If(self.fall):
                m.d.sync += self.dat_oe.eq(0)
                m.next = "STATUS_START"
            self._abandon(m)
        with m.State("STATUS_START"):
            m.d.comb += self.fresh.eq(1)
            with m.If(self.sample & ~self.dat_i[0]):
                m.next = "STATUS"
            self._abandon(m)
        with m.State("STATUS"):
            m.d.comb += self.step.eq(self.sample)
            with m.If(self.sample):
                with m.If(count[:2] == 0):  # the end bit
                    m.next = "BUSY"
                with m.Else():
                    m.d.sync += status.eq(Cat(self.dat_i[0], status[:2]))
            self._abandon(m)
        with m.State("BUSY"):
            m.d.comb += self.good.eq(status == 0b010)
            with m.If(self.sample & self.dat_i[0]):
                m.d.comb += self.done.eq(1)
                m.next = "IDLE"
            self._abandon(m)

    def _abandon(self, m):
        with m.If(~self.send):
            m.d.sync += self.dat_oe.eq(0)
            m.next = "IDLE"

    def _words(self, m):
        """Words from symbols, and symbols from words."""
        lines, width = self.lines, self.width
        per_byte, per_word = 8 // lines, width // lines
        at = self.count[: (per_word - 1).bit_length()]  # symbols left of this word
        in_byte = at[: (per_byte - 1).bit_length()]
        byte, word = Signal(8 - lines), Signal(width - 8)
        together = Cat(self.dat_i, byte)
        receiving, sending = self.fsm.ongoing("DATA"), self.fsm.ongoing("SEND_DATA")
        m.d.comb += [
            self.word.eq(Cat(word, together)),
            self.w_left.eq(self.count // per_word),
            self.w_en.eq(receiving & self.sample & (at == 0) & ~self.switch & self.receive),
        ]
        with m.If(receiving & self.sample):
            m.d.sync += byte.eq(together)
            with m.If(in_byte == 0):
                m.d.sync += word.eq(Cat(word, together)[8:])
                # Byte 16 of 64; the function of group 1 is in its low half.
                place = (self.count // per_byte)[:6]
                last = self.switch & (place == SWITCH_STATUS - 1 - 16)
                with m.If(last):
                    m.d.sync += self.high.eq(together[:4] == 1)

        # The register empties by bytes; the next word of the block takes the place of the last
        # symbol, so that the clock runs on if it is there.
        out, loaded = Signal(width), self.loaded
        moves, empties, needs = Signal(), Signal(), Signal()
        gap = self.fsm.ongoing("SEND_GAP")
        m.d.comb += [
            self.outgoing.eq(out[:8] >> (in_byte * lines)),
            moves.eq(sending & self.fall & (in_byte == 0)),
            empties.eq(moves & (at == 0)),
            needs.eq(((gap | sending) & ~loaded) | (empties & ~self.block_ends)),
            self.o_ready.eq(self.o_valid & self.send & needs),
        ]
        with m.If(moves):
            m.d.sync += out.eq(out[8:])
        with m.If(self.o_ready):
            m.d.sync += [out.eq(self.o_word), loaded.eq(1)]
        with m.Elif(empties | ~self.send):
            m.d.sync += loaded.eq(0)
