"""Command line of an SD bus: commands out, responses in, CRC7 both ways."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Response", "SdCommand"]


class Response(enum.Enum, shape=2):
    """Format of a command's response."""

    NONE = 0
    #: 48 bits with CRC: R1, R1b, R6, R7.
    SHORT = 1
    #: 48 bits without CRC: R3.
    PLAIN = 2
    #: 136 bits, CRC over the last 128: R2.
    LONG = 3


class SdCommand(wiring.Component):
    """Sends one command and receives its response, a bit at a time.

    ============  ===  ========  ================================================================
    member        dir  shape     meaning
    ============  ===  ========  ================================================================
    ``go``        In   1         send a command; ignored unless ``idle``
    ``kind``      In   Response  of the response; stable until ``done``
    ``bit``       In   1         the command's bit at ``place``, of bits 47 to 8
    ``idle``      Out  1         at least 8 clocks have passed since the last command (N_RC, N_CC)
    ``taken``     Out  1         pulse: the bit at ``place`` is on its way
    ``sent``      Out  1         pulse: the end bit was on the line for a clock
    ``done``      Out  1         pulse: the response was received, or no start bit came
    ``failed``    Out  1         with ``done``: no start bit within 128 clocks (N_CR: 64), a wrong
                                 CRC, or a 0 in place of the end bit
    ``receives``  Out  1         pulse: ``cmd_i`` is the response's bit at ``place``
    ``place``     Out  8         of the bit: from 47 of a command; of a response, less its start
                                 bit, from 46, or from 134 of a long one; 0 is the end bit
    ============  ===  ========  ================================================================

    ``fall``, ``sample``: pulses of :class:`~.clock.SdClock`; ``cmd_i``: the registered pin;
    ``cmd_o``, ``cmd_oe``: the pin's output and its enable. Bit n of a short response's argument is
    at place n + 8, bit n of a CSD at n. CRC and end bit are added here. Never stops the clock.
    Source: SD Physical Layer Simplified Specification, 4.5 (CRC7), 4.7 (commands), 4.9
    (responses), 4.12 (timing). Reset: idle; the line is not driven.
    """

    go: In(1)
    kind: In(Response)
    bit: In(1)
    idle: Out(1)
    taken: Out(1)
    sent: Out(1)
    done: Out(1)
    failed: Out(1)
    receives: Out(1)
    place: Out(8)
    fall: In(1)
    sample: In(1)
    cmd_i: In(1)
    cmd_o: Out(1, init=1)
    cmd_oe: Out(1)

    # No register holds a command or a response: both are made and used bit by bit. The CRC7
    # register sees every bit that passes, so that after a correct CRC it is 0. Below 0 the count
    # goes on with 255, from where the clocks without a start bit and those of the gap are counted.
    def elaborate(self, platform):
        m = Module()
        self.crc = crc = Signal(7)
        count, symbol, step, clear = self.place, Signal(), Signal(), Signal()
        end, long = Signal(), self.kind == Response.LONG
        feedback = symbol ^ crc[6]
        m.d.comb += end.eq(count == 0)
        with m.If(clear):
            m.d.sync += crc.eq(0)
        with m.Elif(step):
            m.d.sync += crc.eq(Cat(feedback, crc[0], crc[1], crc[2] ^ feedback, crc[3:6]))
        with m.FSM() as self.fsm:
            with m.State("IDLE"):
                m.d.comb += [self.idle.eq(1), clear.eq(1)]
                m.d.sync += count.eq(47)
                with m.If(self.go):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += symbol.eq(Mux(count[3:] == 0, crc[6], self.bit))
                with m.If(self.fall):
                    m.d.comb += [step.eq(1), self.taken.eq(1)]
                    m.d.sync += [self.cmd_oe.eq(1), self.cmd_o.eq(symbol | end)]
                    m.d.sync += count.eq(count - 1)
                    with m.If(end):
                        m.next = "RELEASE"
            with m.State("RELEASE"):
                m.d.comb += clear.eq(1)
                with m.If(self.fall):
                    m.d.comb += self.sent.eq(1)
                    m.d.sync += self.cmd_oe.eq(0)
                    m.next = "WAIT"
                    with m.If(self.kind == Response.NONE):
                        m.d.comb += self.done.eq(1)
                        m.next = "GAP"
            with m.State("WAIT"):
                with m.If(self.sample):
                    m.d.sync += count.eq(count - 1)
                    with m.If(~self.cmd_i):
                        m.d.sync += count.eq(Mux(long, 134, 46))
                        m.next = "RECEIVE"
                    with m.Elif(~count[7]):
                        m.d.comb += [self.done.eq(1), self.failed.eq(1)]
                        m.next = "GAP"
            with m.State("RECEIVE"):
                # Of a long response the CRC covers bits 127 to 8; header bits are cleared with 128.
                m.d.comb += [symbol.eq(self.cmd_i), self.receives.eq(self.sample)]
                with m.If(self.sample):
                    m.d.comb += [step.eq(~end), clear.eq(long & count[7])]
                    m.d.sync += count.eq(count - 1)
                    with m.If(end):
                        checked = self.kind != Response.PLAIN
                        m.d.comb += self.done.eq(1)
                        m.d.comb += self.failed.eq((checked & (crc != 0)) | ~self.cmd_i)
                        m.next = "GAP"
            with m.State("GAP"):
                with m.If(self.fall):
                    m.d.sync += count.eq(count - 1)
                    with m.If(~count[3]):
                        m.next = "IDLE"
        return m
