"""How the SMP framer answers: the bytes before a result, and the descriptor that sends both."""

from amaranth import Array, Cat, Mux, Signal
from trebuchet.models.smp_framing import TYPE_DATA, TYPE_RESPONSE

from .smp_registers import COUNTED, HEADER_BYTES

__all__ = ["SmpReply"]


class SmpReply:
    """Methods of :class:`~trebuchet.cores.services.framer.SmpFramer`.

    ``reply`` says what is answered, ``total`` how many bytes of the ring that is the answer to.
    """

    def _slot_address(self, slot):
        log2 = self.slot_bytes.bit_length() - 1
        offset = Cat(slot, self.machine.session) << log2
        # An adder only where the slots' base is not aligned to their total size.
        aligned = self.slots_base & ((1 << len(offset)) - 1) == 0
        return self.slots_base | offset if aligned else self.slots_base + offset

    def _reply(self, m, state, new):
        reply, mem = self.reply, self.mem
        n = self.width // 8
        beats = 16 // n
        at = Signal(range(beats + 1))
        words = [
            Mux(reply.error, TYPE_RESPONSE, 0),
            Mux(reply.error, 8, TYPE_DATA),
            Mux(reply.error, reply.status, reply.length + 4),
            reply.id,
        ]
        header = Cat(Signal(32, name=f"word{i}") for i in range(4))
        for i, word in enumerate(words):
            m.d.comb += header.word_select(i, 32).eq(word)
        m.d.comb += [
            mem.cmd.valid.eq(self.reader.mem_cmd.valid),
            mem.cmd.payload.eq(self.reader.mem_cmd.payload),
            self.reader.mem_cmd.ready.eq(mem.cmd.ready),
            self.reader.mem_rdata.valid.eq(mem.rdata.valid),
            self.reader.mem_rdata.payload.eq(mem.rdata.payload),
            mem.rdata.ready.eq(self.reader.mem_rdata.ready),
            mem.wdata.payload.data.eq(
                Array(header.word_select(i, self.width) for i in range(beats))[at]
            ),
            mem.wdata.payload.strb.eq(-1),
            mem.wdata.payload.last.eq(at == beats - 1),
            mem.wdone.ready.eq(1),
        ]
        with m.State("REPLY"):
            m.d.sync += at.eq(0)
            m.next = "COMMAND"
        with m.State("COMMAND"):
            m.d.comb += [
                mem.cmd.valid.eq(1),
                mem.cmd.payload.write.eq(1),
                mem.cmd.payload.addr.eq(self._slot_address(reply.slot)),
                mem.cmd.payload.beats.eq(beats - 1),
                mem.cmd.payload.tag.eq(0),
            ]
            with m.If(mem.cmd.ready):
                m.next = "DATA"
        with m.State("DATA"):
            m.d.comb += mem.wdata.valid.eq(at != beats)
            with m.If(mem.wdata.valid & mem.wdata.ready):
                m.d.sync += at.eq(at + 1)
            with m.If(mem.wdone.valid):
                m.next = "POST"
        with m.State("POST"):
            self._post(m, state, new)
            self._end(m)

    def _post(self, m, state, new):
        reply, tx = self.reply, self.machine.descriptor
        m.d.comb += [
            self.machine.post.eq(1),
            new.need.eq(HEADER_BYTES),
            new.closing.eq(reply.fatal),
        ]
        m.d.sync += [
            tx.length.eq(Mux(reply.error, 16, reply.length + 12)),
            tx.push.eq(1),
            tx.close.eq(reply.fatal),
            tx.tag.eq(reply.slot),
        ]
        self._consume(m, state, new, self.total)
        with m.If(~reply.error):
            self._count(m, "answers")
        with m.Else():
            with m.Switch(reply.status):
                for status in COUNTED:
                    with m.Case(status):
                        self._count(m, status.name.lower())
