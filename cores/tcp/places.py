"""Places: the numbers by which services call the sessions that they are at work for."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .number_lists import placed
from .record import Phase

__all__ = ["PlacePools", "due", "may_release", "may_rest"]


def due(record):
    """Whether there is something to tell of a session without a place: why it gets one."""
    return record.ev_data | record.ev_eof | record.ev_closed


def may_rest(record):
    """Whether a session may give its place back, all of whose bytes are consumed."""
    over = (record.phase == Phase.CLOSED) | (record.phase == Phase.TIME_WAIT)
    return (record.count == 0) & ~over & ~record.fin_told


def may_release(record):
    """Whether a session that is over may be released: everything was told."""
    return (record.count == 0) & ~record.ev_closed


class PlacePools(wiring.Component):
    """A pool of places for each service, and which session has each of them.

    ============  ==========  ==================================================================
    ``pick``      In          service whose pool is looked at
    ``valid``     Out         ``number`` is free in that pool
    ``number``    Out         a place
    ``take``      In          strobe, only while ``valid``: ``session`` takes ``number``
    ``session``   In          session number
    ``asked``     In          place (low bits) and service
    ``holder``    Out         the session that took it last, 1 cycle later
    ``give``      In          strobe: place ``given`` is free again
    ``given``     In          place (low bits) and service, as ``asked``
    ``free``      Out, array  free places of each service
    ============  ==========  ==================================================================

    Parameters: ``places`` of each pool, a power of two; ``services``, their number;
    ``session_bits``; ``lut_ram``, bits up to which a memory is LUT RAM.

    Each pool is a stack in one memory. ``valid`` falls for two cycles after a change of ``pick`` or
    of any pool. A service that has used all of its places leaves those of others alone. Reset: all
    are free, after a cycle for each place. Bad input: a place that is given back twice breaks
    its pool; the engine gives back only what a record has.
    """

    def __init__(self, places, services, session_bits, lut_ram=256):
        if not isinstance(places, int) or places < 2 or places & (places - 1):
            raise ValueError(f"Places must be a power of two of at least 2, not {places!r}")
        self.places, self.services, self.lut_ram = places, services, lut_ram
        self.bits = (places - 1).bit_length()
        self.service_bits = max(1, (services - 1).bit_length())
        super().__init__(
            {
                "pick": In(self.service_bits),
                "valid": Out(1),
                "number": Out(self.bits),
                "take": In(1),
                "session": In(session_bits),
                "asked": In(self.bits + self.service_bits),
                "holder": Out(session_bits),
                "give": In(1),
                "given": In(self.bits + self.service_bits),
                "free": Out(range(places + 1)).array(services),
            }
        )

    def elaborate(self, platform):
        m = Module()
        depth = self.places << self.service_bits
        self.memories = [
            Memory(
                shape=unsigned(width),
                depth=depth,
                init=[],
                attrs=placed(width * depth, self.lut_ram),
            )
            for width in (self.bits, len(self.session))
        ]
        m.submodules.numbers, m.submodules.holders = numbers, holders = self.memories
        levels = [Signal.like(free, init=self.places) for free in self.free]
        level = Signal.like(levels[0])
        service = self.given[self.bits :]
        read, write = numbers.read_port(), numbers.write_port()
        self.last, self.wrote = last, wrote = Signal(len(self.asked)), Signal()
        self.filled, self.fill = filled, fill = Signal(), Signal(range(depth))
        back = Array(levels)[service] if len(levels) > 1 else levels[0]
        m.d.comb += [
            level.eq(Array(levels)[self.pick] if len(levels) > 1 else levels[0]),
            [free.eq(own) for free, own in zip(self.free, levels, strict=True)],
            read.addr.eq(Cat((level - 1)[: self.bits], self.pick)),
            self.number.eq(read.data),
            # What was read is what is on top now. With `give` there would be two changes at once.
            self.valid.eq(filled & (level != 0) & (last == read.addr) & ~wrote & ~self.give),
            write.en.eq(self.give | ~filled),
            write.addr.eq(Mux(filled, Cat(back[: self.bits], service), fill)),
            write.data.eq(Mux(filled, self.given[: self.bits], fill[: self.bits])),
        ]
        m.d.sync += [last.eq(read.addr), wrote.eq(write.en)]
        with m.If(~filled):
            m.d.sync += [fill.eq(fill + 1), filled.eq(fill == depth - 1)]
        for k, own in enumerate(levels):
            m.d.sync += own.eq(own + (self.give & (service == k)) - (self.take & (self.pick == k)))
        find, enter = holders.read_port(), holders.write_port()
        m.d.comb += [
            find.addr.eq(self.asked),
            self.holder.eq(find.data),
            enter.en.eq(self.take),
            enter.addr.eq(Cat(self.number, self.pick)),
            enter.data.eq(self.session),
        ]
        return m
