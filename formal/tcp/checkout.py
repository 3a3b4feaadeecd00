"""The session store's side of a checkout, for proofs of one engine with an arbitrary record.

:class:`Checkout` lends any record, after any wait, to the engine under proof, as the contract of
``CheckoutSignature`` says, and asserts the engine's half of that contract: a request stays, with
its session, until the store has read the session's number; the record is handed back only while it
is lent, and within a fixed number of cycles. :class:`Checkout` also holds the record that is
expected: properties are said by overriding fields of ``after`` and then calling
:meth:`Checkout.compare`, which asserts that every field the engine writes is as expected, so those
not named are unchanged.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, C, Mux, Signal, Value
from amaranth.lib import data
from trebuchet.cores.tcp.record import TIME_WIDTH, record_layout

from ..kit import inside as named
from ..stream import free

__all__ = ["CLOSED", "FREE", "OPEN", "SYN_RCVD", "SYN_SENT", "TIME_WAIT"]
__all__ += ["Checkout", "Inside", "descriptor_ram", "handed_back", "signed", "steady"]

#: Values of the field ``phase``, as the table of ``cores/tcp/record.py`` orders them.
FREE, SYN_RCVD, OPEN, TIME_WAIT, CLOSED, SYN_SENT = range(6)


def signed(a):
    """A difference of sequence numbers as a number of either sign."""
    return a[:32].as_signed()


def handed_back(m, port, now):
    """The record as the store keeps it when ``port`` hands it back at the time ``now``."""
    kept = Signal(port.record.shape(), name="kept_by_the_store")
    m.d.comb += kept.eq(port.record)
    for name in port.signature.writes:
        value = now if name == "progress" else port.result[name]
        if name == "deadline":
            value = now + value
        with m.If(port.changes[name] if name in port.changes.shape().members else 1):
            m.d.comb += Value.cast(kept[name]).eq(value)
    return kept


def steady(m, signal, lent):
    """Assume that ``signal`` stands still while the record is lent, and in the cycle before."""
    value = Value.cast(signal)
    past = Signal(len(value), name=f"{getattr(signal, 'name', 'value')}_past")
    m.d.sync += past.eq(value)
    with m.If(lent):
        m.d.comb += Assume(value == past)


def descriptor_ram(m, dut, checkout, constant=False):
    """Answer the engine's read port: any descriptors, the four of a lent session standing still.

    Returns those by slot, and the slot now shown (4 if none). What is read at an address of another
    session means nothing.
    """
    layout = dut.descriptor.shape()
    slots = [Signal(layout, name=f"descriptor_{k}") for k in range(4)]
    at, right, junk = Signal(2), Signal(), Signal(layout.size)
    free(m, junk)
    for slot in slots:
        value = Value.cast(slot)
        m.d.comb += value.eq(AnyConst(len(value)) if constant else AnySeq(len(value)))
        steady(m, slot, checkout.lent)
    m.d.sync += [at.eq(dut.address[:2]), right.eq(dut.address[2:] == checkout.session)]
    m.d.comb += Value.cast(dut.descriptor).eq(junk)
    for k, slot in enumerate(slots):
        with m.If(right & (at == k)):
            m.d.comb += Value.cast(dut.descriptor).eq(slot)
    return slots, Mux(right, at, 4)


class Inside(named.Inside):
    """Signals of an engine by ``[name]``. A state is told by its number, which adds no signal."""

    known = named.Inside.fsm_bounded

    def __getitem__(self, name):
        return self.signal(name)

    def view(self, name, layout):
        return data.View(layout, self[name])

    def part(self, name):
        return self.parts[name]

    def state(self, name, fsm="fsm"):
        machine = self._fsms[fsm]
        return machine.state == machine.encoding[name]


class Checkout:
    """Lends records to ``port``. Attributes: ``record``, ``phase`` (as a number), ``session``
    (whose record it is), ``held`` (cycles since the grant), ``done`` (the record is handed back),
    ``after`` (the record expected then), ``opening`` (it is in SYN-SENT), ``bounded`` (the phase is
    one that there is).

    ``now`` is the store's time, any if none is given.

    With ``constant`` every checkout shows the same record, any one: what an engine kept from an
    earlier one is then any value that the invariants allow, which makes long checkouts cheap.
    """

    def __init__(self, m, port, longest, constant=False, now=None):
        self.m, self.port, self.record = m, port, port.record
        layout = record_layout(port.signature.config)
        fetch, lent, waits, lent_before = (
            Signal(name=name) for name in ("fetch", "lent", "waits", "lent_before")
        )
        self.fetch, self.lent = fetch, lent
        self.session, asked = Signal.like(port.session), Signal.like(port.session, name="asked")
        self.held = Signal(range(longest + 2))
        self.done, self.phase = Signal(name="handed_back"), Signal(3, name="phase_now")
        past = Signal(layout.size, name="record_past")
        record = Value.cast(port.record)
        m.d.comb += record.eq(AnyConst(layout.size) if constant else AnySeq(layout.size))
        m.d.comb += [
            port.grant.eq(lent),
            self.done.eq(lent & port.commit),
            self.phase.eq(Value.cast(port.record.phase)),
            Assert(~port.commit | lent),
            Assert(~lent | (self.held <= longest)),
        ]
        m.d.sync += [
            past.eq(record),
            lent_before.eq(lent),
            asked.eq(port.session),
            waits.eq(port.request & ~fetch & ~lent),
        ]
        with m.If(lent & lent_before):
            m.d.comb += Assume(record == past)
        with m.If(waits):
            m.d.comb += [Assert(port.request), Assert(port.session == asked)]
        with m.If(fetch):
            m.d.comb += Assert(port.request)
            m.d.sync += [fetch.eq(0), lent.eq(1), self.session.eq(port.session), self.held.eq(0)]
        with m.Elif(lent):
            m.d.sync += self.held.eq(self.held + 1)
            with m.If(port.commit):
                m.d.sync += lent.eq(0)
        with m.Else():
            m.d.sync += fetch.eq(port.request & AnySeq(1))
        m.d.comb += [Assert(~(fetch & lent)), Assert(~lent_before | lent | ~fetch)]

        active = port.signature.config.active
        self.opening = self.phase == SYN_SENT if active else C(0)
        self.bounded = self.phase <= (SYN_SENT if active else CLOSED)
        self.now = Signal(TIME_WIDTH, name="time_of_the_store")
        m.d.comb += self.now.eq(AnySeq(TIME_WIDTH) if now is None else now)
        self.kept = handed_back(m, port, self.now)
        self.after = Signal(layout, name="after")
        m.d.comb += self.after.eq(self.record)

    def compare(self, when=1):
        """The record handed back is the one expected, in all that the engine may write."""
        with self.m.If(self.done & when):
            for name in self.port.signature.writes:
                expected = Value.cast(self.after[name])
                self.m.d.comb += Assert(Value.cast(self.kept[name]) == expected)

    def put(self, **fields):
        """Statements that expect these values."""
        return [Value.cast(self.after[name]).eq(value) for name, value in fields.items()]

    def killed(self, reset):
        """Statements: the session is over at once; with ``reset`` its peer gets a RST.

        But not if we have only sent it a SYN (RFC 9293, 3.10.5).
        """
        r = self.record
        nothing = ("ack_due", "syn_due", "resend", "probe", "keepalive", "ok")
        return [
            *self.put(**dict.fromkeys(nothing, 0)),
            # A service that was never told of the session need not be told of its end.
            *self.put(phase=CLOSED, rst_due=reset & ~self.opening, check=1, ev_closed=r.opened),
            *self.put(released=~r.opened),
        ]
