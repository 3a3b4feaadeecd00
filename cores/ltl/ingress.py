"""Where messages of roles come in: copied to slots of the store, then handed to the sender.

Source: cloud-scale-acceleration, section V.A (unacknowledged frame queue).
"""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import StreamFifo

__all__ = ["Ingress"]


class Ingress(wiring.Component):
    """Copies each message to a free slot and offers it to the sender.

    =================  ==========  =============================================================
    ``i``              In, array   messages, one stream a virtual channel (``message_layout``)
    ``commit``         Out, array  messages that lie in the store, one stream a virtual channel
    ``release``        In          ``slot`` and ``vc`` of a message that needs its slot no more,
    ``release_valid``  In          for one cycle each; at any time
    ``addr``           Out         write port of the store: slot and beat,
    ``data``           Out         the beat,
    ``en``             Out         and when
    ``used``           Out         slots that are taken
    ``oversize``       Out         for one cycle: a message was too long, and dropped
    ``damaged``        Out         for one cycle: a message came with ``error``, and was dropped
    =================  ==========  =============================================================

    One message is copied at a time, a beat a cycle, with one idle cycle between two; channels take
    turns. *Back-pressure*: a channel waits while no slot is free for it, or two of its messages
    wait for the sender; it then holds up no other. Of the slots, ``reserve`` are each channel's
    own; the rest are anybody's. *Reset*: all slots are free after as many cycles as there are
    slots. *Bad input*: a message that is too long or has ``error`` is dropped, and its slot taken
    for the next one.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(config.message_layout)).array(config.vcs),
                "commit": Out(stream.Signature(config.commit_layout)).array(config.vcs),
                "release": In(config.stored_layout),
                "release_valid": In(1),
                "addr": Out(config.slot_layout.width + config.slot_bits),
                "data": Out(config.width),
                "en": Out(1),
                "used": Out(range(config.slots + 1)),
                "oversize": Out(1),
                "damaged": Out(1),
            }
        )

    # The engine holds the next free slot in `slot` before a message comes, so that copying begins
    # at once. `vc` is the channel whose message is being copied.
    def elaborate(self, platform):
        m = Module()
        config = self.config
        slot, have = Signal(config.slot_layout), Signal()
        self._free_list(m, slot, have, taken := Signal())
        self.slot, self.have, self.waiting = slot, have, (waiting := [])
        for v in range(config.vcs):
            m.submodules[f"waiting{v}"] = fifo = StreamFifo(config.commit_layout, 2)
            waiting.append(fifo)
            wiring.connect(m, fifo.o, wiring.flipped(self.commit[v]))
        copying, vc = Signal(), Signal(config.vc_layout)
        self.copying, self.vc = copying, vc
        may = self._quotas(m, taken, vc)
        wants = Signal(config.vcs)
        m.d.comb += wants.eq(
            Cat(self.i[v].valid & (waiting[v].level < 2) & may[v] for v in range(config.vcs))
        )
        beat = Signal(config.message_layout)
        m.d.comb += beat.eq(Array(port.payload for port in self.i)[vc])
        valid = Signal()
        m.d.comb += valid.eq(Array(port.valid for port in self.i)[vc] & copying)
        for v in range(config.vcs):
            m.d.comb += self.i[v].ready.eq(copying & (vc == v))
        self._choose(m, copying, vc, wants, have, valid & beat.last)
        self._copy(m, valid, beat, slot, vc, waiting, taken)
        return m

    def _choose(self, m, copying, vc, wants, have, ends):
        """Whose message is next: the channel after the last one that has one."""
        n = self.config.vcs
        with m.If(ends):
            m.d.sync += copying.eq(0)
        with m.Elif(~copying & have & wants.any()):
            m.d.sync += copying.eq(1)
            with m.Switch(vc):
                for v in range(n):
                    with m.Case(v):
                        for step in reversed(range(1, n + 1)):
                            with m.If(wants[(v + step) % n]):
                                m.d.sync += vc.eq((v + step) % n)

    def _copy(self, m, valid, beat, slot, vc, waiting, taken):
        config = self.config
        self.index = index = Signal(range(config.message_beats + 1))
        length, room = Signal(11), Signal()
        m.d.comb += room.eq(index != config.message_beats)
        # Registered, so that the store's address comes straight from registers.
        m.d.sync += [
            self.addr.eq(Cat(index[: config.slot_bits], slot)),
            self.data.eq(beat.data),
            self.en.eq(valid & room),
        ]
        m.d.comb += length.eq((index + 1) * config.bytes - beat.empty)
        good = Signal()
        m.d.comb += good.eq(valid & beat.last & room & ~beat.error & (length <= config.max_message))
        m.d.sync += [self.oversize.eq(0), self.damaged.eq(0)]
        with m.If(valid):
            m.d.sync += index.eq(Mux(beat.last, 0, index + room))
            with m.If(beat.last):
                m.d.sync += self.damaged.eq(beat.error)
                m.d.sync += self.oversize.eq(~good & ~beat.error)
        m.d.comb += taken.eq(good)
        for v, fifo in enumerate(waiting):
            m.d.comb += [
                fifo.i.valid.eq(good & (vc == v)),
                fifo.i.payload.connection.eq(beat.connection),
                fifo.i.payload.stored.slot.eq(slot),
                fifo.i.payload.stored.vc.eq(v),
                fifo.i.payload.stored.length.eq(length),
            ]

    def _free_list(self, m, slot, have, taken):
        """Slots that nobody has; ``slot`` is the next one, taken out already."""
        config = self.config
        m.submodules.free = self.free = free = StreamFifo(config.slot_layout, max(2, config.slots))
        self.fill = fill = Signal(range(config.slots + 1))
        with m.If(fill != config.slots):
            m.d.sync += fill.eq(fill + 1)
            m.d.comb += [free.i.valid.eq(1), free.i.payload.eq(fill)]
        with m.Else():
            m.d.comb += [free.i.valid.eq(self.release_valid), free.i.payload.eq(self.release.slot)]
        m.d.comb += free.o.ready.eq(~have | taken)
        with m.If(~have | taken):
            m.d.sync += [have.eq(free.o.valid), slot.eq(free.o.payload)]

    def _quotas(self, m, taken, vc):
        """Which channels may take one more slot: who has not got his reserve, or from the rest."""
        config = self.config
        shared = config.slots - config.vcs * config.reserve
        beyond = Signal(range(config.slots + 1))  # slots taken beyond their channels' reserves
        self.beyond, self.held = beyond, []
        more, less, may = Signal(), Signal(), Signal(config.vcs)
        m.d.sync += [beyond.eq(beyond + more - less), self.used.eq(self.used + taken)]
        with m.If(self.release_valid):
            m.d.sync += self.used.eq(self.used + taken - 1)
        for v in range(config.vcs):
            held = Signal(range(config.slots + 1), name=f"held{v}")
            self.held.append(held)
            up, down = Signal(name=f"up{v}"), Signal(name=f"down{v}")
            m.d.comb += [
                up.eq(taken & (vc == v)),
                down.eq(self.release_valid & (self.release.vc == v)),
                may[v].eq((held < config.reserve) | (beyond < shared)),
            ]
            m.d.sync += held.eq(held + up - down)
            with m.If(up & ~down & (held >= config.reserve)):
                m.d.comb += more.eq(1)
            with m.If(down & ~up & (held > config.reserve)):
                m.d.comb += less.eq(1)
        return may
