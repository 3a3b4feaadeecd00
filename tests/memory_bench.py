"""Both ends of a memory port as test benches; import them from :mod:`streams`."""

from amaranth.hdl import ShapeCastable, Value
from amaranth.lib import data

__all__ = ["Driven", "Hold", "MemoryRequester", "MemoryResponder", "bits", "plainly", "raw"]


def bits(value):
    """A sampled payload as one int."""
    return value.as_bits() if isinstance(value, data.Const) else int(value)


def _chance(rng, probability):
    return rng is not None and rng.random() < probability


def raw(payload):
    """The bits of a payload as a value to sample: they come as an int.

    Most cycles transfer nothing, and to make a struct of a sample takes longer than the cycle.
    """
    return Value.cast(payload)


def plainly(payload, value):
    """What sampling ``payload`` gives where :func:`raw` of it gave ``value``."""
    shape = payload.shape()
    return shape.from_bits(value) if isinstance(shape, ShapeCastable) else value


class Driven:
    """A signal or struct that one test bench drives; what it has already is not set again.

    Values are ints, or dicts for a struct.
    """

    def __init__(self, target):
        self._target, self._now = target, None

    def set(self, ctx, value):
        if value != self._now:
            self._now = value
            ctx.set(self._target, value)


class _Offer:
    """A stream on which one test bench offers beats."""

    def __init__(self, stream):
        self._valid, self._payload = Driven(stream.valid), Driven(stream.payload)

    def set(self, ctx, payload):
        """Offer ``payload`` (a dict), or nothing when it is None."""
        self._valid.set(ctx, payload is not None)
        if payload is not None:
            self._payload.set(ctx, payload)


def _strobed(payload):
    """A beat of write data without the bytes that mean nothing (rule 3)."""
    strb = payload.strb
    mask = sum(0xFF << 8 * lane for lane in range(strb.bit_length()) if strb >> lane & 1)
    return payload.data & mask, strb, payload.last


class Hold:
    """Rule 2 on one stream that is sampled every cycle."""

    def __init__(self, name):
        self.name, self.held = name, None

    def check(self, valid, ready, payload):
        if self.held is not None:
            assert valid, f"{self.name}: valid fell before the transfer (stream rule 2)"
            assert self._word(payload) == self.held, f"{self.name}: payload changed (rule 2)"
        self.held = self._word(payload) if valid and not ready else None

    def _word(self, payload):
        return _strobed(payload) if self.name == "wdata" else bits(payload)


class _Burst:
    """One command on its way through a memory port."""

    def __init__(self, write, addr, beats, tag, data=None, strb=None):
        self.write, self.addr, self.beats, self.tag = write, addr, beats, tag
        self.data = data if data is not None else []  # one int a beat
        self.strb = strb if strb is not None else []
        self.done = False
        self.due = 0

    def __repr__(self):
        kind = "write" if self.write else "read"
        return f"{kind}(addr={self.addr:#x}, beats={self.beats}, tag={self.tag})"


class MemoryResponder:
    """Background test bench: a memory behind a requester's port, as awkward as the rules allow.

    Random latency, random order between tags, random back-pressure on ``cmd`` and ``wdata``, gaps
    in ``rdata``. Checks the requester's side of the rules of ``cores/memory.py``. A read sees
    memory at a random moment between its command and its data, a write reaches memory all at
    once just before ``wdone``.

    Parameters
    ----------
    port
        A port with :class:`trebuchet.cores.memory.MemorySignature`, e.g. ``dut.mem``.
    memory : bytearray
        The contents; read and written in place. Addresses wrap at its length.
    rng : random.Random or None
        None: no stalls, fixed latency, everything in order.
    latency : (int, int)
        Bounds of the cycles between a read's command and its first data.
    write_latency : (int, int) or None
        Bounds of the cycles between a write's last data and its response. None: with ``rng`` up to
        four times as long as a read, or hazards of a read behind a write would never come to pass.
    stall : float
        Probability of each stream to pause in a cycle.
    outstanding : int
        Accepted commands without a finished response, at most.

    Attributes: ``log`` lists the bursts accepted so far; ``busy`` is true while one is unfinished.
    """

    background = True

    def __init__(
        self,
        port,
        memory,
        *,
        rng=None,
        latency=(4, 40),
        write_latency=None,
        stall=0.3,
        outstanding=8,
    ):
        self.port, self.memory, self.rng = port, memory, rng
        self.stall, self.outstanding = stall, outstanding
        slow = latency if rng is None else (latency[0], 4 * latency[1])
        self.latency, self.write_latency = latency, write_latency or slow
        self.n = len(port.wdata.payload.strb)
        self.log = []
        self._now = 0
        self._unfinished = 0
        self._waiting = []  # writes that lack data, in command order
        self._pending = []  # complete commands, in the order they became so

    @property
    def busy(self):
        return self._unfinished > 0

    def _delay(self, burst):
        bounds = self.write_latency if burst.write else self.latency
        return bounds[0] if self.rng is None else self.rng.randint(*bounds)

    def _accept(self, payload):
        burst = _Burst(payload.write, payload.addr, payload.beats + 1, payload.tag)
        assert burst.addr % self.n == 0, f"unaligned address in {burst!r}"
        self.log.append(burst)
        self._unfinished += 1
        if burst.write:
            self._waiting.append(burst)
        else:
            burst.due = self._now + self._delay(burst)
            self._pending.append(burst)

    def _store(self, payload):
        burst = self._waiting[0]
        burst.data.append(payload.data)
        burst.strb.append(payload.strb)
        full = len(burst.data) == burst.beats
        assert bool(payload.last) == full, f"wdata.last is wrong in {burst!r}"
        if full:
            self._waiting.pop(0)
            burst.due = self._now + self._delay(burst)
            self._pending.append(burst)

    def _pick(self, write):
        """A command of that kind whose response may start now, or None."""
        seen, ready = set(), []
        for burst in self._pending:
            if burst.write == write and burst.tag not in seen:
                seen.add(burst.tag)
                if burst.due <= self._now:
                    ready.append(burst)
                elif self.rng is None:
                    break
        if not ready:
            return None
        chosen = ready[0] if self.rng is None else self.rng.choice(ready)
        self._pending.remove(chosen)
        return chosen

    def _apply(self, burst):
        for i, (word, strb) in enumerate(zip(burst.data, burst.strb, strict=True)):
            for lane in range(self.n):
                if strb >> lane & 1:
                    at = (burst.addr + i * self.n + lane) % len(self.memory)
                    self.memory[at] = word >> (8 * lane) & 0xFF

    def _fetch(self, burst):
        size = len(self.memory)
        for i in range(burst.beats):
            at = burst.addr + i * self.n
            word = bytes(self.memory[(at + lane) % size] for lane in range(self.n))
            burst.data.append(int.from_bytes(word, "little"))

    def _finish(self, burst):
        burst.done = True
        self._unfinished -= 1

    def _offer(self, ctx):
        """Drive the port for a cycle."""
        rng = self.rng
        room = self._unfinished < self.outstanding
        self._cmd_taken = room and not _chance(rng, self.stall)
        self._wdata_taken = bool(self._waiting) and not _chance(rng, self.stall)
        self._cmd_ready.set(ctx, self._cmd_taken)
        self._wdata_ready.set(ctx, self._wdata_taken)
        if self._reading is None and (reading := self._pick(write=0)) is not None:
            self._fetch(reading)
            self._reading, self._sent = reading, 0
        if self._done is None and (done := self._pick(write=1)) is not None:
            self._apply(done)
            self._done = done
        if self._reading is not None and not self._offered:
            self._offered = not _chance(rng, self.stall)
        beat = None
        if self._offered:
            reading, sent = self._reading, self._sent
            last = sent + 1 == reading.beats
            beat = {"data": reading.data[sent], "tag": reading.tag, "last": last}
        self._rdata.set(ctx, beat)
        self._wdone.set(ctx, None if self._done is None else {"tag": self._done.tag})

    def _take(self, cmd, wdata, rdata_ready, wdone_ready):
        """What the requester did in this cycle; ``cmd`` and ``wdata`` None if not valid."""
        self._now += 1
        self._hold_cmd.check(cmd is not None, self._cmd_taken, cmd)
        self._hold_wdata.check(wdata is not None, self._wdata_taken, wdata)
        if wdata is not None and self._wdata_taken:
            self._store(wdata)
        if cmd is not None and self._cmd_taken:
            self._accept(cmd)
        if self._offered and rdata_ready:
            self._offered = False
            self._sent += 1
            if self._sent == self._reading.beats:
                self._reading = self._finish(self._reading)
        if self._done is not None and wdone_ready:
            self._done = self._finish(self._done)

    async def __call__(self, ctx):
        port = self.port
        cmd, wdata = port.cmd.payload, port.wdata.payload
        self._hold_cmd, self._hold_wdata = Hold("cmd"), Hold("wdata")
        self._reading = self._done = None  # the burst whose rdata or wdone is being offered
        self._sent, self._offered = 0, False
        self._cmd_ready, self._wdata_ready = Driven(port.cmd.ready), Driven(port.wdata.ready)
        self._rdata, self._wdone = _Offer(port.rdata), _Offer(port.wdone)
        self._offer(ctx)
        async for _, _, cv, cp, wv, wp, *ready in ctx.tick().sample(
            port.cmd.valid,
            raw(cmd),
            port.wdata.valid,
            raw(wdata),
            port.rdata.ready,
            port.wdone.ready,
        ):
            command = plainly(cmd, cp) if cv else None
            self._take(command, plainly(wdata, wp) if wv else None, *ready)
            self._offer(ctx)


class MemoryRequester:
    """Background test bench: drives the port of a memory, model or arbiter, and checks answers.

    ``start_read``/``start_write`` queue a burst and return it at once, so that several are
    outstanding; ``read``/``write`` wait for the end. Answers are matched by tag, in command order
    per tag; a stray, interleaved or misplaced one fails.

    Parameters
    ----------
    port
        A port with :class:`trebuchet.cores.memory.MemorySignature`, seen from either side.
    rng : random.Random or None
        Source of pauses; None: none.
    stall : float
        Probability of each stream to pause in a cycle.
    """

    background = True

    def __init__(self, port, *, rng=None, stall=0.3):
        self.port, self.rng, self.stall = port, rng, stall
        self.n = len(port.wdata.payload.strb)
        self._cmds, self._data, self._open = [], [], []

    def _start(self, burst):
        assert burst.addr % self.n == 0, f"unaligned address in {burst!r}"
        assert 1 <= burst.beats <= 64, f"{burst!r} must have 1 to 64 beats"
        self._cmds.append(burst)
        return burst

    def start_read(self, addr, beats=1, tag=0):
        return self._start(_Burst(0, addr, beats, tag))

    def start_write(self, addr, content, tag=0, strb=None):
        """``content``: whole beats of bytes; ``strb``: one mask a beat, all ones when absent."""
        assert len(content) % self.n == 0, f"content must be beats of {self.n} bytes"
        words = [
            int.from_bytes(content[i : i + self.n], "little")
            for i in range(0, len(content), self.n)
        ]
        strb = list(strb) if strb is not None else [(1 << self.n) - 1] * len(words)
        assert len(strb) == len(words), "one strobe mask a beat"
        return self._start(_Burst(1, addr, len(words), tag, words, strb))

    def content(self, burst):
        """The bytes of a finished read."""
        return b"".join(word.to_bytes(self.n, "little") for word in burst.data)

    async def wait(self, ctx, *bursts):
        while not all(burst.done for burst in bursts):
            await ctx.tick()

    async def read(self, ctx, addr, beats=1, tag=0):
        burst = self.start_read(addr, beats, tag)
        await self.wait(ctx, burst)
        return self.content(burst)

    async def write(self, ctx, addr, content, tag=0, strb=None):
        await self.wait(ctx, self.start_write(addr, content, tag, strb))

    @property
    def idle(self):
        return not (self._cmds or self._data or self._open)

    def _supplies(self):
        """Whether the next beat of write data is offered now, asked once a cycle."""
        return not _chance(self.rng, self.stall)

    def _oldest(self, write, tag):
        for burst in self._open:
            if burst.write == write and burst.tag == tag:
                return burst
        raise AssertionError(f"{'wdone' if write else 'rdata'} with tag {tag}, nothing asked for")

    def _take_rdata(self, payload, current):
        burst = current or self._oldest(0, payload.tag)
        assert payload.tag == burst.tag, f"rdata of tag {payload.tag} inside {burst!r} (rule 4)"
        burst.data.append(payload.data)
        full = len(burst.data) == burst.beats
        assert bool(payload.last) == full, f"rdata.last is wrong in {burst!r} (rule 4)"
        if not full:
            return burst
        self._finish(burst)
        return None

    def _take_wdone(self, payload):
        burst = self._oldest(1, payload.tag)
        assert all(beats is not burst.beats_left for beats in self._data), "wdone before the data"
        self._finish(burst)

    def _finish(self, burst):
        burst.done = True
        self._open.remove(burst)

    def _queue_data(self, burst):
        burst.beats_left = [
            {"data": word, "strb": strb, "last": i + 1 == burst.beats}
            for i, (word, strb) in enumerate(zip(burst.data, burst.strb, strict=True))
        ]
        self._data.append(burst.beats_left)

    async def __call__(self, ctx):
        port, rng = self.port, self.rng
        hold_rdata, hold_wdone = Hold("rdata"), Hold("wdone")
        offered_cmd, offered_wdata = _Offer(port.cmd), _Offer(port.wdata)
        cmd = beat = current = None
        while True:
            if cmd is None and self._cmds and not _chance(rng, self.stall):
                cmd = self._cmds.pop(0)
                self._open.append(cmd)
                if cmd.write:
                    self._queue_data(cmd)
            if beat is None and self._data and self._supplies():
                beat = self._data[0][0]
            command = None
            if cmd is not None:
                command = {"write": cmd.write, "addr": cmd.addr, "beats": cmd.beats - 1}
                command["tag"] = cmd.tag
            offered_cmd.set(ctx, command)
            offered_wdata.set(ctx, beat)
            rdata_ready, wdone_ready = (not _chance(rng, self.stall) for _ in range(2))
            ctx.set(port.rdata.ready, rdata_ready)
            ctx.set(port.wdone.ready, wdone_ready)
            _, _, cr, wr, rv, rp, dv, dp = await ctx.tick().sample(
                port.cmd.ready,
                port.wdata.ready,
                port.rdata.valid,
                port.rdata.payload,
                port.wdone.valid,
                port.wdone.payload,
            )
            hold_rdata.check(rv, rdata_ready, rp)
            hold_wdone.check(dv, wdone_ready, dp)
            if cmd is not None and cr:
                cmd = None
            if beat is not None and wr:
                beat = None
                self._data[0].pop(0)
                if not self._data[0]:
                    self._data.pop(0)
            if rv and rdata_ready:
                current = self._take_rdata(rp, current)
            if dv and wdone_ready:
                self._take_wdone(dp)
