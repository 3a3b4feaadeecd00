"""``SdCommand`` against a naive card on the command line: CRC7, formats, time-outs, the gap."""

import pytest
from streams import make_rng, run
from trebuchet.cores.sd.command import Response, SdCommand


def crc7(bits):
    """SD Physical Layer Simplified Specification, 4.5."""
    crc = 0
    for bit in bits:
        top = crc >> 6 ^ bit
        crc = (crc << 1 & 0x7F) ^ (9 if top else 0)
    return [crc >> k & 1 for k in range(6, -1, -1)]


def response_of(rng, kind):
    """A card's response, its start bit first."""
    if kind == Response.LONG:
        body = [rng.getrandbits(1) for _ in range(120)]
        return [0, 0, *[1] * 6, *body, *crc7(body), 1]
    body = [0, 0, *(rng.getrandbits(1) for _ in range(38))]
    end = [1] * 7 if kind == Response.PLAIN else crc7(body)
    return [*body, *end, 1]


class Bus:
    """Pulses of the clock at random distances, and a card that sends ``bits`` after ``wait``."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.sent, self.received, self.pulses = [], [], []
        self.answer, self.clocks, self.result = None, 0, None

    async def clock(self, ctx):
        """One period: outputs change at the fall, and are sampled later."""
        dut, line = self.dut, 1
        answer = self.answer
        if answer and answer[0]:
            answer[0] -= 1
        elif answer and answer[1]:
            line = answer[1].pop(0)
        for strobe in (dut.fall, dut.sample):
            if self.rng.random() < 0.3:
                await self.tick(ctx)
            ctx.set(dut.cmd_i, line)
            ctx.set(dut.bit, self.bit(ctx.get(dut.place)))
            ctx.set(strobe, 1)
            await self.tick(ctx)
            ctx.set(strobe, 0)
            if strobe is dut.sample:
                self.sent.append(ctx.get(dut.cmd_o) if ctx.get(dut.cmd_oe) else None)
        self.clocks += 1

    def bit(self, place):
        return self.command[47 - place] if 8 <= place <= 47 else self.rng.getrandbits(1)

    async def tick(self, ctx):
        dut = self.dut
        samples = dut.receives, dut.cmd_i, dut.place, dut.done, dut.failed, dut.sent
        _, _, receives, line, place, done, failed, sent = await ctx.tick().sample(*samples)
        if receives:
            self.received.append((place, line))
        if done:
            assert self.result is None
            self.result = bool(failed)
        if sent:
            self.pulses.append(self.clocks)


CASES = [(kind, fault) for kind in Response for fault in ("", "crc", "end", "late", "none")]


@pytest.mark.parametrize(("kind", "fault"), CASES)
def test_commands_and_responses(kind, fault):
    """Twice each; the second shows that nothing is left of the first."""
    dut, rng = SdCommand(), make_rng(len(fault), kind.name)
    bus = Bus(dut, rng)

    async def bench(ctx):
        for _ in range(2):
            bus.command = [0, 1, *(rng.getrandbits(1) for _ in range(38))]
            bus.sent.clear()
            bus.received.clear()
            bus.pulses.clear()
            bus.clocks, bus.result, bus.answer = 0, None, None
            assert ctx.get(dut.idle)
            assert not ctx.get(dut.cmd_oe)
            ctx.set(dut.kind, kind)
            ctx.set(dut.go, 1)
            await bus.tick(ctx)
            ctx.set(dut.go, 0)
            while not bus.pulses:
                await bus.clock(ctx)
            whole = [*bus.command, *crc7(bus.command), 1]
            assert bus.sent[:48] == whole
            assert bus.sent[48:] == [None] * (len(bus.sent) - 48)
            bits = response_of(rng, kind)
            if fault == "crc":
                bits[rng.randrange(9, len(bits) - 1)] ^= 1
            elif fault == "end":
                bits[-1] = 0
            given = bits.copy()
            wait = 60 if fault == "late" else rng.randrange(2, 10)
            if fault != "none":
                bus.answer = [wait, bits]
            while bus.result is None:
                await bus.clock(ctx)
                assert bus.clocks < 400
            if kind == Response.NONE:
                assert not bus.result
            elif fault == "none":
                assert bus.result
                assert 120 <= bus.clocks - bus.pulses[0] <= 140
            else:
                wrong = fault == "end" or (fault == "crc" and kind != Response.PLAIN)
                assert bus.result == wrong
                top = 134 if kind == Response.LONG else 46
                assert bus.received == list(zip(range(top, -1, -1), given[1:], strict=True))
            end = bus.clocks
            bus.answer = None
            while not ctx.get(dut.idle):
                await bus.clock(ctx)
            assert 8 <= bus.clocks - end <= 10

    run(dut, bench, limit=4000)
