"""Configuration messages to the board's firmware, which the SMP framer gives it in parts."""

from amaranth import Array, Cat, Mux
from trebuchet.models.status import Status

from ..roles.contract import ROLE_WIDTH, JobKind
from .smp_registers import BOARD, GIVES_ROLE, HEADER_BYTES

__all__ = ["SmpParts"]


class SmpParts:
    """Methods of :class:`~trebuchet.cores.services.framer.SmpFramer`, for rule 10.

    Of a message in parts a session's record has one bit more, ``part``: the header was answered,
    and ``need`` is what the latest answer asked for. How much is left the firmware keeps.
    """

    def _board_fields(self):
        """Fields of a session's record: role of messages that name none; parts; whose job it is."""
        return {"role": ROLE_WIDTH, "part": 1, "job_board": 1} if self.board else {}

    def _in_parts(self, state):
        return state.part if self.board else 0

    def _of_board(self, state):
        return state.job_board if self.board else 0

    def _role_of_port(self, port):
        return Array(self.roles)[port] if len(self.roles) > 1 else self.roles[0]

    def _connect_choice(self, m, state):
        choice = self.choice
        m.d.comb += choice.asked.eq(self.reader.header[8:16])
        if self.count > 1:
            m.d.comb += choice.doors.eq(self.doors)
        if len(self.roles) > 1:
            m.d.comb += self.to.eq(state.port)
        own = state.role if self.board else self._role_of_port(getattr(self, "to", 0))
        m.d.comb += choice.own.eq(own)

    def _opens_with_role(self, m, new):
        if self.board:
            m.d.comb += new.role.eq(self._role_of_port(getattr(self, "origin", 0)))

    def _next_part(self, m, state):
        """The part that was asked for, or why it does not come, becomes a job."""
        if not self.board:
            return
        whole = self.enough & ~state.dead
        m.d.sync += self.total.eq(Mux(whole, state.need, 0))
        with m.If(~self.job.valid & self.door):
            self._go_on(m, "PART")

    def _part(self, m, state, new):
        """States in which a part becomes a job, and in which its bytes are consumed."""
        job = self.job.payload
        missing = self.total == 0
        slot = state.slots[0]
        with m.State("PART"):
            self._give_job(m, state, new, slot, 0)
            m.d.comb += new.job_board.eq(1)
            m.d.sync += [
                job.role.eq(BOARD),
                job.id.eq(Cat(~state.part, missing & state.late, missing & state.dead)),
                job.length.eq(self.total),
            ]
            if self.kinds:
                m.d.sync += job.kind.eq(JobKind.CONFIGURE)
            for kind in self.kinds:
                m.d.comb += new[f"job_{kind.name.lower()}"].eq(0)
            if JobKind.STREAM in self.kinds:
                m.d.sync += job.first.eq(~state.going)
            self._end(m)
        with m.State("GO_ON"):
            self._consume(m, state, new, self.total)
            m.d.comb += new.need.eq(self.reply.length)
            self._end(m)

    def _answer_of_board(self, m, state, new):
        """In the state in which an answer is taken, which goes on to reply to it."""
        answer = self.answer.payload
        good = state.job_board & (answer.status == Status.OK)
        goes_on = good & (answer.length != 0)
        m.d.comb += new.part.eq(goes_on)
        with m.If(good & answer.id[GIVES_ROLE]):
            m.d.comb += new.role.eq(answer.id[:ROLE_WIDTH])
        with m.If(goes_on):
            m.d.comb += new.slots.bit_select(state.job_slot, 1).eq(0)
            self._go_on(m, "GO_ON")

    def _header_of_board(self, m):
        """In the state in which a header is judged: a message in parts begins with its header."""
        if not self.board:
            return
        m.d.sync += self.total.eq(HEADER_BYTES)
        with m.If(self.door):
            m.next = "PART"
        with m.Else():
            self._end(m)

    def _has_own_role(self, state):
        """The connection has another role than its port."""
        if not self.board:
            return 0
        return state.role != self._role_of_port(getattr(self, "to", 0))
