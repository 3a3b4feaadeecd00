"""A memory behind AXI4, and a processor on AXI4-Lite, as test benches."""

from collections import deque

from streams import stream_get, stream_put

__all__ = ["PAGE", "AxiMemory", "axi_lite_read", "axi_lite_write"]

PAGE = 4096


class AxiMemory:
    """A memory behind AXI: address, data and response channels at random times, all in order.

    It checks that no burst crosses a page and that ``last`` marks the last beat. A write is in the
    memory when it is answered, and not before.
    """

    background = True

    def __init__(self, axi, memory, rng=None, stall=0.3, bad=()):
        self.axi, self.memory, self.rng, self.stall, self.bad = axi, memory, rng, stall, bad
        self.n = len(axi.w.p.strb)
        self.reads, self.writes, self.beats = deque(), deque(), deque()
        self.bursts = []

    def _pause(self):
        return self.rng is not None and self.rng.random() < self.stall

    def _burst(self, payload):
        size = (payload.len + 1) * self.n
        assert payload.addr % PAGE + size <= PAGE, "the burst crosses a page"
        assert payload.addr % self.n == 0
        self.bursts.append((payload.addr, payload.len + 1))
        return payload.addr, payload.len + 1

    def _apply(self, addr, count):
        """Write the next ``count`` beats; tells whether they were there."""
        if len(self.beats) < count:
            return False
        for i in range(count):
            data, strb, last = self.beats.popleft()
            assert last == (i == count - 1), "w.last must mark the last beat"
            for lane in range(self.n):
                if strb >> lane & 1:
                    at = (addr + i * self.n + lane) % len(self.memory)
                    self.memory[at] = data >> 8 * lane & 0xFF
        return True

    def _read_beat(self):
        addr, left = self.reads[0]
        word = bytes(self.memory[(addr + lane) % len(self.memory)] for lane in range(self.n))
        resp = 2 if addr in self.bad else 0
        return {"data": int.from_bytes(word, "little"), "resp": resp, "last": left == 1}

    async def __call__(self, ctx):
        axi = self.axi
        answering, reading = False, False
        ready = {"aw": False, "w": False, "ar": False}
        while True:
            for name in ready:
                ready[name] = not self._pause()
                ctx.set(getattr(axi, name).ready, ready[name])
            if not answering and self.writes and not self._pause() and self._apply(*self.writes[0]):
                answering = True
                ctx.set(axi.b.p.resp, 3 if self.writes[0][0] in self.bad else 0)
            ctx.set(axi.b.valid, answering)
            reading = reading or bool(self.reads) and not self._pause()
            ctx.set(axi.r.valid, reading)
            if reading:
                ctx.set(axi.r.payload, self._read_beat())
            got = await ctx.tick().sample(
                axi.aw.valid, axi.aw.payload, axi.w.valid, axi.w.payload,
                axi.ar.valid, axi.ar.payload, axi.b.ready, axi.r.ready,
            )  # fmt: skip
            _, _, aw, aw_p, w, w_p, ar, ar_p, b_ready, r_ready = got
            if aw and ready["aw"]:
                self.writes.append(self._burst(aw_p))
            if w and ready["w"]:
                self.beats.append((w_p.data, w_p.strb, w_p.last))
            if ar and ready["ar"]:
                self.reads.append(self._burst(ar_p))
            if answering and b_ready:
                answering = False
                self.writes.popleft()
            if reading and r_ready:
                reading = False
                addr, left = self.reads.popleft()
                if left > 1:
                    self.reads.appendleft((addr + self.n, left - 1))


async def axi_lite_write(ctx, bus, addr, value, strb=15):
    """Write a word; returns the response."""
    ctx.set(bus.aw.payload, {"addr": addr})
    ctx.set(bus.w.payload, {"data": value, "strb": strb})
    ctx.set(bus.aw.valid, 1)
    ctx.set(bus.w.valid, 1)
    await ctx.tick().until(bus.aw.ready & bus.w.ready)
    ctx.set(bus.aw.valid, 0)
    ctx.set(bus.w.valid, 0)
    return (await stream_get(ctx, bus.b)).resp


async def axi_lite_read(ctx, bus, addr):
    """Read a word; returns data and response."""
    await stream_put(ctx, bus.ar, {"addr": addr})
    answer = await stream_get(ctx, bus.r)
    return answer.data, answer.resp
