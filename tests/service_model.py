"""The TCP engine's side of a service port, as a test bench: many sessions in random legal timing.

:class:`EngineModel` plays a list of :class:`Connection` against ``dut.service``
(:mod:`trebuchet.cores.tcp.service`) and checks everything that the contract asks of a service. It
keeps the receive pool in the test's ``bytearray``; segments move whenever they are empty and are
overwritten when they are given back. Transmitted bytes are collected at a random time after the
descriptor was taken, and read again at ``SENT``: memory reused too early is noticed.
"""

import contextlib

from memory_bench import Driven, Hold, plainly, raw
from trebuchet.cores.tcp.service import TX_PER_SESSION, EventKind, EventLayout

__all__ = ["Connection", "EngineModel"]

POSITIONS = 1 << 32


def _all_sent(conn):
    return conn.delivered == len(conn.payload)


class Connection:
    """What one client does, and what became of it.

    Parameters
    ----------
    payload : bytes
        What the client sends, cut at random.
    fin : callable
        When the client sends FIN: a condition on the connection; asked once all bytes are sent.
    vanish : callable
        When the client goes away without a word (or sends RST): a condition, asked all the time.
    chunk : int
        Bytes one event tells of, at most.

    Attributes: ``received`` (bytes the service sent), ``pushes`` (their counts at which PSH was
    set), ``got_fin`` (the service closed), ``aborted`` (it sent RST), ``ok`` (how it ended).
    """

    def __init__(self, payload=b"", *, fin=_all_sent, vanish=lambda conn: False, chunk=1500):
        self.payload, self.chunk = payload, chunk
        self.fin, self.vanish = fin, vanish
        self.number = self.base = self.ok = None
        self.received = b""
        self.pushes = []
        self.opened = self.eof = self.closed = self.released = False
        self.got_fin = self.aborted = self.closing = self.gone = False
        self.delivered = self.freed = 0
        self.descriptors = []

    def __repr__(self):
        return (
            f"Connection(number={self.number}, delivered={self.delivered}/{len(self.payload)}, "
            f"freed={self.freed}, received={len(self.received)}, eof={self.eof}, "
            f"closing={self.closing}, closed={self.closed}, open={len(self.descriptors)})"
        )


class _Descriptor:
    def __init__(self, payload, snapshot, collect, done):
        self.addr, self.length, self.tag = payload.addr, payload.length, payload.tag
        self.push, self.close = bool(payload.push), bool(payload.close)
        self.snapshot, self.collect, self.done = snapshot, collect, done
        self.collected = False


class EngineModel:
    """Test bench that returns when every connection is over and released.

    Parameters
    ----------
    port
        ``dut.service``.
    memory : bytearray
        External memory.
    connections : list of Connection
        Played in order, as session numbers come free.
    rng : random.Random
        Timing of everything.
    sessions, segment_log2 : int
        Session numbers in use; log2 of a segment's bytes.
    pool : int
        Address of the receive pool: one segment a session, and one more.
    responder : MemoryResponder or None
        The memory behind ``dut.mem``: its reads in the pool must hit segments in use, its writes
        must lie in ``writable``.
    latency : (int, int)
        Bounds of the cycles until the peer acknowledges.
    stall : float
        Probability of each stream to pause in a cycle.
    """

    def __init__(
        self,
        port,
        memory,
        connections,
        *,
        rng,
        sessions=4,
        segment_log2=12,
        pool=0,
        responder=None,
        writable=range(0),
        latency=(5, 150),
        stall=0.3,
    ):
        self.port, self.memory, self.rng = port, memory, rng
        self.queue = list(connections)
        self.total = len(self.queue)
        self.live = {}
        self.numbers = list(range(sessions))
        self.segment = 1 << segment_log2
        self.pool = pool
        self.free_segments = [pool + i * self.segment for i in range(sessions + 1)]
        self.pool_end = pool + (sessions + 1) * self.segment
        self.responder, self.writable = responder, writable
        self.latency, self.stall, self.pause = latency, stall, stall
        self.refuse = stall  # the same of `tx` and `free`
        self.now = 0
        self.finished = 0
        self.events = 0
        self._logged = 0

    # --- memory ------------------------------------------------------------------------------

    def _read(self, addr, length):
        assert addr + length <= len(self.memory), "descriptor past the end of the memory"
        return bytes(self.memory[addr : addr + length])

    def _give_back(self, conn):
        if conn.base is not None:
            start = conn.base
            self.memory[start : start + self.segment] = self.rng.randbytes(self.segment)
            self.free_segments.append(start)
            conn.base = None

    def _check_accesses(self):
        if self.responder is None:
            return
        n = self.responder.n
        for burst in self.responder.log[self._logged :]:
            end = burst.addr + burst.beats * n
            if burst.write:
                assert burst.addr in self.writable, f"{burst!r} outside the service's memory"
                assert end <= self.writable.stop, f"{burst!r} outside the service's memory"
            elif self.pool <= burst.addr < self.pool_end:
                start = burst.addr - burst.addr % self.segment
                owners = [c for c in self.live.values() if c.base == start]
                assert owners, f"{burst!r} in a segment that belongs to no session"
                assert end <= start + self.segment, f"{burst!r} leaves its segment"
        self._logged = len(self.responder.log)

    # --- events ------------------------------------------------------------------------------

    def _choices(self, conn):
        """Kinds of event that may come next for this connection."""
        if not conn.opened:
            return [EventKind.OPEN]
        kinds = []
        head = conn.descriptors[0] if conn.descriptors else None
        if head is not None and head.collected and head.done <= self.now:
            kinds.append(EventKind.SENT)
        if conn.closed:
            return kinds
        if conn.gone or (conn.eof and conn.got_fin):
            return kinds or ([] if conn.descriptors else [EventKind.CLOSED])
        if conn.delivered < min(len(conn.payload), conn.freed + self.segment):
            kinds.append(EventKind.DATA)
        if not conn.eof and conn.delivered == len(conn.payload) and conn.fin(conn):
            kinds.append(EventKind.EOF)
        return kinds

    def _event(self, conn, kind):
        """Payload of an event, and what is to be done when the service has taken it."""
        rng = self.rng
        fields = {
            "kind": kind.value,
            "session": conn.number,
            "ok": rng.getrandbits(1),
            "tag": rng.getrandbits(8),
            "base": rng.getrandbits(32),
            "position": conn.delivered % POSITIONS if kind != EventKind.SENT else 0,
        }
        if kind == EventKind.DATA:
            return fields | self._data(conn), None
        if kind == EventKind.SENT:
            head = conn.descriptors[0]
            assert conn.gone or self._read(head.addr, head.length) == head.snapshot, (
                f"memory of descriptor {head.tag} changed before SENT: {conn!r}"
            )
            fields |= {"tag": head.tag, "ok": int(not conn.gone)}
            return fields, lambda: conn.descriptors.pop(0)
        if kind == EventKind.CLOSED:
            conn.ok = not conn.gone
            fields["ok"] = int(conn.ok)
            return fields, lambda: setattr(conn, "closed", True)
        flag = "opened" if kind == EventKind.OPEN else "eof"
        return fields, lambda: setattr(conn, flag, True)

    def _data(self, conn):
        rng = self.rng
        if conn.base is not None and conn.freed == conn.delivered and rng.random() < 0.3:
            self._give_back(conn)
        if conn.base is None:
            conn.base = self.free_segments.pop(rng.randrange(len(self.free_segments)))
        room = min(len(conn.payload), conn.freed + self.segment) - conn.delivered
        count = min(room, rng.choice([1, 7, rng.randint(1, conn.chunk), conn.chunk]))
        for at in range(conn.delivered, conn.delivered + count):
            self.memory[conn.base + at % self.segment] = conn.payload[at]
        conn.delivered += count
        return {"base": conn.base, "position": conn.delivered % POSITIONS}

    def _next_event(self):
        rng = self.rng
        candidates = [(c, k) for c in self.live.values() for k in self._choices(c)]
        # Dense and sparse times: a service does other work only when no event waits.
        if rng.random() < 0.02:
            self.pause = rng.choice([self.stall, 0.9, 0.97])
        if not candidates or rng.random() < self.pause:
            return None
        conn, kind = rng.choice(candidates)
        return self._event(conn, kind)

    # --- the service's streams ---------------------------------------------------------------

    def _conn(self, number, what):
        assert number in self.live, f"{what} names session {number}, which is not open"
        conn = self.live[number]
        assert conn.opened, f"{what} before OPEN"
        return conn

    def _take_tx(self, payload):
        conn = self._conn(payload.session, "tx")
        assert not conn.closing, f"tx after close or abort: {conn!r}"
        assert len(conn.descriptors) < TX_PER_SESSION, f"too many descriptors: {conn!r}"
        assert payload.length or payload.close or payload.abort, "an empty descriptor"
        collect = self.now + self.rng.randint(*self.latency)
        done = collect + self.rng.randint(*self.latency)
        snapshot = self._read(payload.addr, payload.length)
        conn.descriptors.append(_Descriptor(payload, snapshot, collect, done))
        conn.closing = bool(payload.close or payload.abort)
        if payload.abort:
            conn.aborted = conn.gone = True

    def _take_free(self, payload):
        conn = self._conn(payload.session, "free")
        if not payload.release:
            step = (payload.position - conn.freed) % POSITIONS
            assert step <= conn.delivered - conn.freed, (
                f"free to {payload.position} goes back or beyond what was delivered: {conn!r}"
            )
            conn.freed += step
        else:
            assert conn.closed, f"release before CLOSED: {conn!r}"
            assert not conn.descriptors, f"release before every SENT: {conn!r}"
            conn.released = True
            self._give_back(conn)
            del self.live[conn.number]
            self.numbers.append(conn.number)
            self.finished += 1

    # --- time --------------------------------------------------------------------------------

    def _advance(self):
        """Connections come, go, and the peers receive."""
        if self.queue and self.numbers and self.rng.random() < 0.2:
            conn = self.queue.pop(0)
            conn.number = self.numbers.pop(self.rng.randrange(len(self.numbers)))
            self.live[conn.number] = conn
        for conn in self.live.values():
            if conn.opened and not conn.gone and not conn.closed and conn.vanish(conn):
                conn.gone = True
            for descriptor in conn.descriptors:
                if not descriptor.collected:
                    if descriptor.collect <= self.now or conn.gone:
                        self._collect(conn, descriptor)
                    break

    def _collect(self, conn, descriptor):
        descriptor.collected = True
        if conn.gone or conn.closed:
            return
        content = self._read(descriptor.addr, descriptor.length)
        assert content == descriptor.snapshot, f"memory changed before it was sent: {conn!r}"
        conn.received += content
        conn.got_fin |= descriptor.close
        if descriptor.push:
            conn.pushes.append(len(conn.received))

    def _offer(self, ctx):
        """Drive the port for a cycle."""
        self._advance()
        if self._told is None and (chosen := self._next_event()) is not None:
            fields, self._commit = chosen
            self._told = EventLayout.const(fields).as_bits()
        self._event_valid.set(ctx, self._told is not None)
        if self._told is not None:
            self._event_payload.set(ctx, self._told)
        self._tx_taken, self._free_taken = (self.rng.random() >= self.refuse for _ in range(2))
        self._tx_ready.set(ctx, self._tx_taken)
        self._free_ready.set(ctx, self._free_taken)

    def _take(self, event_ready, tx, free):
        """What the service did in this cycle; ``tx`` and ``free`` None if they are not valid."""
        self.now += 1
        if self._told is not None and event_ready:
            self.events += 1
            if self._commit is not None:
                self._commit()
            self._told = self._commit = None
        self._hold_tx.check(tx is not None, self._tx_taken, tx)
        self._hold_free.check(free is not None, self._free_taken, free)
        self._check_accesses()
        if tx is not None and self._tx_taken:
            self._take_tx(tx)
        if free is not None and self._free_taken:
            self._take_free(free)

    async def __call__(self, ctx):
        port = self.port
        tx, free = port.tx.payload, port.free.payload
        self._told = self._commit = None
        self._event_valid = Driven(port.event.valid)
        self._event_payload = Driven(raw(port.event.payload))
        self._tx_ready, self._free_ready = Driven(port.tx.ready), Driven(port.free.ready)
        self._hold_tx, self._hold_free = Hold("tx"), Hold("free")
        samples = (port.event.ready, port.tx.valid, raw(tx), port.free.valid, raw(free))
        async with contextlib.aclosing(aiter(ctx.tick().sample(*samples))) as ticks:
            while self.finished < self.total:
                self._offer(ctx)
                _, _, event_ready, tv, tp, fv, fp = await anext(ticks)
                sent = plainly(tx, tp) if tv else None
                self._take(event_ready, sent, plainly(free, fp) if fv else None)
        self._event_valid.set(ctx, 0)
