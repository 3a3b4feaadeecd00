"""SD host controller: a card in a slot as a drive, from insertion to removal, without firmware."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature
from ..drive.port import DriveSignature, DriveStatus
from .buffer import SdBuffer
from .clock import SdClock
from .command import Response, SdCommand
from .data import SdData
from .numbers import SdNumbers
from .registers import UNIT, sd_block
from .steps import COMMANDS, ERRORS, Step, among, command_bit

__all__ = ["SdHost"]

#: Commands that end a transfer: sent also while the card drives DAT0.
_STOPS = (Step.STOP, Step.WRITE_STOP)


class SdHost(wiring.Component):
    """Identifies the card in a slot, and reads and writes it for a drive port.

    ===========  ====  ==============  ==========================================================
    member       dir   shape           meaning
    ===========  ====  ==============  ==========================================================
    ``drive``    In    DriveSignature  the port, flipped: :mod:`trebuchet.cores.drive.port`
    ``csr``      In    CsrSignature    :func:`sd_block`; needs no firmware
    ``detect``   In    1               a card is in the slot; 1 where there is no such pin
    ``sd_clk``   Out   1               bus clock
    ``cmd_i``    In    1               CMD, registered once; ``cmd_o``, ``cmd_oe`` to the pin
    ``dat_i``    In    lines           DAT, registered once; ``dat_o``, ``dat_oe`` to the pins
    ===========  ====  ==============  ==========================================================

    Lines need pull-ups. For a level shifter with direction pins, CMD's is ``cmd_oe``, those of the
    data lines ``dat_oe``. SDSC of version 1 and 2, SDHC, SDXC at 3.3 V; 4 lines if ``lines`` is 4,
    high speed if the card has it. One command at a time: CMD18 or ACMD23 and CMD25, ended
    by CMD12; blocks are received into a buffer of four and leave it only after their CRC16s were
    verified. A block that is damaged, and a command without correct response, is repeated up to 3
    times; then the read fails with ``DATA``, or with ``TIMEOUT`` if nothing came, after
    which the card is identified anew. Writes are not repeated: the data are gone. Back-pressure
    stops the bus clock. Without a command, CMD13 asks every ``timeout`` whether the card is
    still there; when there is none, it is looked for as often.

    Time: a block takes ``8 * 512 / lines + 18`` clocks and the card's gap, no gap of the host's.
    A command ends within about 12 times ``timeout``. Bad input: rule 6 of the port. Reset: no card.
    Source: SD Physical Layer Simplified Specification, 4.2 (identification), 4.3 (transfers), 5.3
    (CSD). Not supported: UHS (1.8 V), write protection, locked cards.

    Parameters
    ----------
    clock_hz : int
        Frequency of the clock domain: for 400 kHz, and the registers' reset values.
    width : int
        Data path of the drive port in bits.
    tag_width : int
        Bits of its tags.
    lines : int
        Data lines of the slot, 1 or 4.
    delay : int
        Sample point after reset, 0 to 3 cycles: 1 if clock and lines have a register outside.
    """

    def __init__(self, clock_hz, width=32, tag_width=2, lines=4, delay=0):
        if not isinstance(clock_hz, int) or clock_hz < 1_000_000:
            raise ValueError(f"Clock must be an integer of at least 1 MHz, not {clock_hz!r}")
        if clock_hz > 200_000_000:
            raise ValueError(f"Clock must be at most 200 MHz, not {clock_hz}")
        if lines not in (1, 4):
            raise ValueError(f"Data lines must be 1 or 4, not {lines!r}")
        if delay not in range(4):
            raise ValueError(f"Delay must be 0 to 3, not {delay!r}")
        self.width, self.lines = width, lines
        self.slow = -(-clock_hz // 800_000) - 1
        # 74 clocks, and a millisecond for the supply.
        self.power = max(clock_hz // 1000, 80 * 2 * (self.slow + 1)) // UNIT + 2
        super().__init__(
            {
                "drive": In(DriveSignature(width, tag_width)),
                "csr": In(CsrSignature(sd_block(clock_hz, delay))),
                "detect": In(1),
                "sd_clk": Out(1),
                "cmd_i": In(1),
                "cmd_o": Out(1),
                "cmd_oe": Out(1),
                "dat_i": In(lines),
                "dat_o": Out(lines),
                "dat_oe": Out(1),
            }
        )

    # `step` says which command is next, the state machine how far it is. What a response says is
    # taken bit by bit as it passes (:meth:`_response`).
    def elaborate(self, platform):
        m = Module()
        m.submodules.clock = self.clock = SdClock()
        m.submodules.command = self.command = SdCommand()
        m.submodules.data = self.data = SdData(self.width, self.lines)
        m.submodules.buffer = self.buffer = SdBuffer(self.width)
        m.submodules.numbers = self.numbers = SdNumbers()
        drive = self.drive
        self.write, self.tag = Signal(), Signal.like(drive.done.payload.tag)
        self.beyond = Signal()  # the first sector is beyond 2 ** 32
        self.step, self.tries, self.repeats = Signal(Step), Signal(2), Signal(8)
        self.ready, self.fast, self.high = Signal(), Signal(), Signal()
        self.high_capacity, self.version_2 = Signal(), Signal()
        self.receive, self.status = Signal(), Signal(DriveStatus)
        self.all_read = Signal()
        self.ended, self.odd = Signal(), Signal()  # the packet of a write
        self.restart, self.loads = Signal(), Signal()
        m.d.comb += [
            self.csr.state.eq(
                self.ready | self.high_capacity << 1 | self.high << 2 | self.repeats << 8
            ),
            drive.ready.eq(self.ready),
            drive.present.eq(self.detect),
            drive.done.payload.tag.eq(self.tag),
            drive.done.payload.status.eq(self.status),
        ]
        self._bus(m)
        self._timer(m)
        self._response(m)
        self._output(m)
        self._packet(m)
        with m.FSM() as self.fsm:
            self._identify(m)
            self._next_step(m)
            self._accept(m)
            self._move(m)
            self._end(m)
        self._numbers(m)
        return m

    def _bus(self, m):
        clock, command, data = self.clock, self.command, self.data
        clocks, step = self.csr.clocks, self.step
        quick = Mux(self.high, clocks[8:16], clocks[:8])
        m.d.comb += [
            clock.half.eq(Mux(self.fast, quick, self.slow)),
            clock.delay.eq(clocks[16:18]),
            clock.run.eq(~data.stop),
            clock.cmd_driven.eq(command.cmd_oe),
            clock.dat_driven.eq(data.dat_oe),
            self.sd_clk.eq(clock.sd_clk),
            command.fall.eq(clock.fall),
            command.sample.eq(clock.cmd_sample),
            command.cmd_i.eq(self.cmd_i),
            self.cmd_o.eq(command.cmd_o),
            self.cmd_oe.eq(command.cmd_oe),
            data.fall.eq(clock.fall),
            data.sample.eq(clock.dat_sample),
            data.dat_i.eq(self.dat_i),
            self.dat_o.eq(data.dat_o),
            self.dat_oe.eq(data.dat_oe),
            data.receive.eq(self.receive),
            data.switch.eq(step == Step.SWITCH),
        ]
        with m.Switch(step):
            for one, (_, kind) in COMMANDS.items():
                with m.Case(one):
                    m.d.comb += command.kind.eq(kind)

    def _timer(self, m):
        """Time since the start of a phase, less that in which the bus clock stands still."""
        self.time, timer, over = Signal(range(UNIT)), Signal(16), Signal(init=1)
        self.expired, self.powered = Signal(), Signal()
        unit = Signal()
        m.d.comb += [
            unit.eq(self.time.all()),
            self.expired.eq(over | ~self.detect),
            self.powered.eq(timer[(self.power - 1).bit_length()]),
        ]
        m.d.sync += self.time.eq(self.time + 1)
        with m.If(self.restart):
            m.d.sync += [timer.eq(0), over.eq(0)]
        with m.Else():
            m.d.sync += over.eq(over | (timer == self.csr.timeout))
            with m.If(unit & ~self.data.stop):
                m.d.sync += timer.eq(timer + 1)

    def _numbers(self, m):
        """Join the counters, and set the bits of commands."""
        numbers, cmd = self.numbers, self.drive.cmd.payload
        self.rca = rca = Signal(16)
        command, place, step = self.command, self.command.place, self.step
        argument = Signal()  # bits 39 to 8
        m.d.comb += [
            argument.eq(place[5] ^ (place[4] | place[3])),
            numbers.time.eq(self.time),
            numbers.load.eq(self.loads),
            numbers.lba.eq(cmd.lba),
            numbers.count.eq(cmd.count),
            numbers.rotate.eq(command.taken & argument),
        ]
        command_bit(
            m, step, place, command.bit, rca=rca[15],
            sector=Mux(self.high_capacity, numbers.bit, numbers.byte_bit), left=numbers.left_bit,
            capacity=self.version_2,
        )  # fmt: skip
        address = command.receives & argument & (step == Step.RCA) & (place[5] | place[4])
        with m.If(self.fsm.ongoing("POWER")):
            m.d.sync += rca.eq(0)
        with m.Elif(address & (place >= 24)):
            m.d.sync += rca.eq(Cat(self.cmd_i, rca))
        with m.Elif(command.taken & argument):
            m.d.sync += rca.eq(Cat(rca[15], rca))

    def _response(self, m):
        """Take what a response says, bit by bit."""
        command, numbers, place = self.command, self.numbers, self.command.place
        bit, long = self.cmd_i, self.command.kind == Response.LONG
        self.wrong, self.grown = Signal(), Signal()  # an error bit; the size is complete
        self.power_up, self.switches = Signal(), Signal()
        structure, recent, length, shifts = Signal(), Signal(3), Signal(2), Signal(4)
        last = Signal()  # of the bits of C_SIZE
        with m.If(command.go):
            m.d.sync += self.wrong.eq(0)
        with m.If(command.receives):
            m.d.sync += recent.eq(Cat(bit, recent))
            with m.If(among(place, [n + 8 for n in ERRORS]) & bit):
                m.d.sync += self.wrong.eq(1)
            with m.If((self.step == Step.OP_COND) & (place[1:6] == 39 >> 1)):  # bits 31, 30
                m.d.sync += [self.power_up.eq(self.high_capacity), self.high_capacity.eq(bit)]
            # A CSD, in the order in which it comes: structure, classes, READ_BL_LEN.
            with m.If(place[1:7].all()):
                m.d.sync += structure.eq(bit)
            with m.If(place == 94):
                m.d.sync += self.switches.eq(bit)
            with m.If(place == 79):
                m.d.sync += length.eq(recent)
        # C_SIZE, bits 69 to 48 or 73 to 62; the last sector's number has ones below it.
        m.d.comb += [
            last.eq(place[4] & place[5] & (structure | place[1:4].all())),
            numbers.size_clear.eq(command.receives & (place[1:] == 74 >> 1)),
            numbers.size_shift.eq(
                (command.receives & long & (place[6] | place[7] | last)) | (shifts != 0)
            ),
            numbers.size_bit.eq(bit | (shifts != 0)),
        ]
        with m.If(shifts != 0):
            m.d.sync += shifts.eq(shifts - 1)
            m.d.comb += numbers.grow.eq(shifts == 1)
        with m.If(command.receives & (self.step == Step.CSD) & (place == 46)):
            m.d.sync += shifts.eq(Mux(structure, 10, recent + length + 1))

    def _output(self, m):
        """Blocks to the buffer, and from it to the port."""
        data, buffer, rdata = self.data, self.buffer, self.drive.rdata
        begun = Signal()
        self.kept = Signal()  # a block was received and is correct
        self.tells = Signal()  # the beat that says that a read failed
        m.d.comb += [
            self.kept.eq(data.done & data.good & self.receive & ~data.switch),
            buffer.w_en.eq(data.w_en),
            buffer.w_left.eq(data.w_left),
            buffer.w_data.eq(data.word),
            buffer.keep.eq(self.kept),
            data.permit.eq(buffer.room),
            rdata.valid.eq(buffer.output.valid | self.tells),
            rdata.payload.data.eq(buffer.output.payload),
            rdata.payload.first.eq(~begun),
            rdata.payload.last.eq(self.tells | (buffer.final & buffer.only & self.all_read)),
            rdata.payload.error.eq(self.tells),
            buffer.output.ready.eq(rdata.ready),
        ]
        with m.If(rdata.valid & rdata.ready):
            m.d.sync += begun.eq(~rdata.payload.last)

    def _packet(self, m):
        """The packet of a write: words to the engine while there are, then zeros."""
        data, wdata = self.data, self.drive.wdata
        self.drains = Signal()
        m.d.comb += [
            data.o_valid.eq(wdata.valid | self.ended),
            data.o_word.eq(wdata.payload.data),
            wdata.ready.eq((data.o_ready | self.drains) & ~self.ended),
        ]
        with m.If(wdata.valid & wdata.ready):
            with m.If(wdata.payload.last):
                m.d.sync += self.ended.eq(1)
            with m.If(self.drains | wdata.payload.error | (wdata.payload.empty != 0)):
                m.d.sync += self.odd.eq(1)  # too long, or not whole
        with m.If(data.o_ready & self.ended):
            m.d.sync += self.odd.eq(1)  # too short

    def _identify(self, m):
        command, step = self.command, self.step
        with m.State("ABSENT"):
            m.d.sync += [self.ready.eq(0), self.fast.eq(0), self.high.eq(0)]
            m.d.sync += [self.drive.sectors.eq(0), step.eq(Step.RESET)]
            with m.If(self.detect & self.expired):
                m.d.comb += self.restart.eq(1)
                m.next = "POWER"
            with m.Else():
                self._take(m)
        with m.State("POWER"):
            with m.If(self.powered):
                m.d.comb += self.restart.eq(1)
                m.next = "ISSUE"
        with m.State("ISSUE"):
            free = self.data.clear | among(step, _STOPS)
            with m.If(command.idle & ~self.numbers.busy & free):
                m.d.comb += command.go.eq(1)
                m.next = "RESPONSE"
            with m.Elif(self.expired):
                m.next = "LOST"
        with m.State("SWITCHED"):
            with m.If(self.data.done | self.expired):
                m.d.sync += self.high.eq(self.data.good & self.data.high)
                m.d.sync += self.receive.eq(0)
                m.next = "LOST"
                with m.If(self.data.done):
                    m.next = "USABLE"
        with m.State("USABLE"):
            m.d.sync += [self.ready.eq(1), self.fast.eq(1)]
            m.d.sync += self.drive.sectors.eq(self.numbers.size)
            m.d.comb += self.restart.eq(1)
            m.next = "READY"

    def _next_step(self, m):
        """What follows a response: by default the next command, or none if it failed."""
        command, step, failed = self.command, self.step, self.command.failed
        wrong = failed | self.wrong
        with m.State("RESPONSE"):
            with m.If(command.sent & among(step, (Step.READ, Step.SWITCH))):
                m.d.sync += self.receive.eq(1)
            with m.If(command.done):
                m.next = "ISSUE"
                with m.If(failed):
                    m.next = "LOST"
                with m.Else():
                    m.d.sync += step.eq(step.as_value() + 1)
                with m.Switch(step):
                    with m.Case(Step.IF_COND):
                        m.d.sync += [self.version_2.eq(~failed), step.eq(Step.APP_COND)]
                        m.next = "ISSUE"  # a card of version 1 does not answer
                    with m.Case(Step.OP_COND):
                        with m.If(~self.power_up):
                            m.d.sync += step.eq(Step.APP_COND)
                        with m.If(self.expired):
                            m.next = "LOST"
                    with m.Case(Step.BLOCK):
                        if self.lines == 1:
                            m.d.sync += step.eq(Step.SWITCH)
                            self._switch_or_not(m)
                    with m.Case(Step.WIDTH):
                        self._switch_or_not(m)
                    with m.Case(Step.SWITCH):
                        m.d.sync += step.eq(step)
                        m.next = "SWITCHED"
                        with m.If(failed):
                            m.d.sync += self.receive.eq(0)
                            m.next = "USABLE"
                    with m.Case(Step.POLL):
                        with m.If(~failed):
                            m.d.comb += self.restart.eq(1)
                            m.next = "READY"
                    with m.Case(Step.READ):
                        m.d.comb += self.restart.eq(1)
                        m.next = "READING"
                        with m.If(wrong):
                            self._repeat(m, DriveStatus.TIMEOUT)
                    with m.Case(Step.WRITE):
                        m.d.comb += self.restart.eq(1)
                        m.next = "WRITING"
                        with m.If(wrong):
                            m.d.sync += self.status.eq(DriveStatus.TIMEOUT)
                            m.d.sync += step.eq(Step.WRITE_STOP)
                            m.next = "ISSUE"
                    with m.Case(*_STOPS):
                        m.d.comb += self.restart.eq(1)
                        m.next = "SETTLE"
                    with m.Case(Step.STATUS):
                        m.next = "DRAIN"
                        with m.If(wrong & (self.status == DriveStatus.OK)):
                            m.d.sync += self.status.eq(DriveStatus.DATA)

    def _switch_or_not(self, m):
        with m.If(~self.command.failed & ~self.switches):
            m.next = "USABLE"

    def _take(self, m):
        """Accept a command; it is examined in the next state."""
        cmd = self.drive.cmd
        m.d.comb += [cmd.ready.eq(1), self.loads.eq(1)]
        m.d.sync += [self.write.eq(cmd.payload.write), self.tag.eq(cmd.payload.tag)]
        m.d.sync += [self.tries.eq(0), self.all_read.eq(0), self.ended.eq(0), self.odd.eq(0)]
        m.d.sync += [self.status.eq(DriveStatus.OK), self.beyond.eq(cmd.payload.lba[32:].any())]
        with m.If(cmd.valid):
            m.d.comb += self.numbers.compare.eq(1)
            m.next = "EXAMINE"

    def _accept(self, m):
        numbers = self.numbers
        with m.State("READY"):
            self._take(m)
            with m.If(~self.drive.cmd.valid):
                m.d.sync += self.step.eq(Step.POLL)
                with m.If(self.expired):
                    m.next = "ISSUE"
                with m.If(~self.detect):
                    m.next = "ABSENT"
        with m.State("EXAMINE"):
            m.d.sync += self.step.eq(Mux(self.write, Step.APP_COUNT, Step.READ))
            with m.If(~numbers.busy):
                m.d.comb += self.restart.eq(self.ready)
                m.next = "ISSUE"
                with m.If(numbers.past | numbers.none | self.beyond):
                    m.d.sync += self.status.eq(DriveStatus.RANGE)
                    m.next = "DRAIN"
                with m.If(numbers.none):
                    m.d.sync += self.ended.eq(1)  # a write of no sectors has no packet
                with m.If(~self.ready):
                    m.d.sync += self.status.eq(DriveStatus.ABSENT)
                    m.next = "DRAIN"

    def _repeat(self, m, status):
        """End a read that went wrong; it is repeated from its first block not verified."""
        m.d.sync += [self.step.eq(Step.STOP), self.receive.eq(0)]
        m.d.sync += [self.tries.eq(self.tries + 1), self.repeats.eq(self.repeats + 1)]
        with m.If(self.tries == 3):
            m.d.sync += self.status.eq(status)
        m.next = "ISSUE"

    def _move(self, m):
        data, step, numbers = self.data, self.step, self.numbers
        known = ~numbers.busy
        with m.State("READING"):
            with m.If(data.done & data.good):
                m.d.comb += [self.restart.eq(1), numbers.advance.eq(~numbers.one)]
                m.d.sync += [self.tries.eq(0), self.all_read.eq(numbers.one)]
                with m.If(numbers.one):
                    m.d.sync += [step.eq(Step.STOP), self.receive.eq(0)]
                    m.next = "ISSUE"
            with m.Elif(data.done):
                self._repeat(m, DriveStatus.DATA)
            with m.Elif(known & numbers.past):
                m.d.sync += [step.eq(Step.STOP), self.receive.eq(0)]
                m.d.sync += self.status.eq(DriveStatus.RANGE)
                m.next = "ISSUE"
            with m.Elif(self.expired):
                self._repeat(m, DriveStatus.TIMEOUT)
        with m.State("WRITING"):
            m.d.comb += [data.send.eq(1), numbers.advance.eq(data.begins)]
            m.d.sync += step.eq(Step.WRITE_STOP)
            with m.If(data.done):
                m.d.comb += self.restart.eq(1)
                with m.If(~data.good | self.odd | numbers.none | numbers.past):
                    m.next = "ISSUE"
                with m.If(~numbers.none & numbers.past):
                    m.d.sync += self.status.eq(DriveStatus.RANGE)
                with m.If(~data.good):
                    m.d.sync += self.status.eq(DriveStatus.DATA)
            with m.Elif(self.expired):
                m.d.sync += self.status.eq(DriveStatus.TIMEOUT)
                m.next = "ISSUE"

    def _end(self, m):
        with m.State("SETTLE"):
            with m.If(self.command.idle & (self.data.clear | self.expired)):
                m.d.comb += self.restart.eq(1)
                m.d.sync += self.step.eq(Mux(self.write, Step.STATUS, Step.READ))
                m.next = "ISSUE"
                with m.If(~self.write & ((self.status != DriveStatus.OK) | self.all_read)):
                    m.next = "DRAIN"
        with m.State("LOST"):
            m.d.sync += self.receive.eq(0)
            m.d.comb += self.restart.eq(1)
            m.next = "ABSENT"
            with m.If(self.ready & (self.step != Step.POLL)):
                m.d.sync += self.status.eq(DriveStatus.TIMEOUT)
                m.next = "DRAIN"
        with m.State("DRAIN"):
            with m.If(self.write):
                m.d.comb += self.drains.eq(1)
                with m.If(self.ended):
                    with m.If(self.odd & (self.status == DriveStatus.OK)):
                        m.d.sync += self.status.eq(DriveStatus.DATA)
                    m.next = "DONE"
            with m.Elif(self.buffer.empty):
                m.d.comb += self.tells.eq(self.status != DriveStatus.OK)
                with m.If(~self.tells | self.drive.rdata.ready):
                    m.next = "DONE"
        with m.State("DONE"):
            m.d.comb += self.drive.done.valid.eq(1)
            with m.If(self.drive.done.ready):
                m.d.comb += self.restart.eq(1)
                m.next = "READY"
                with m.If(~self.ready | (self.status == DriveStatus.TIMEOUT)):
                    m.next = "ABSENT"
