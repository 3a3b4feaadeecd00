"""What a bridge must do, said frame by frame, and a role at its tap."""

from collections import deque
from dataclasses import dataclass, field

from streams import packet_get, packet_put
from trebuchet.cores.bridge.bridge import BRIDGE_BLOCK

__all__ = ["Frame", "Role", "counters", "drain", "expected", "fate", "feed"]


@dataclass
class Frame:
    """A frame that comes in, and what the role shall do with it."""

    data: bytes
    error: bool = False
    #: Beat on which the role drops it.
    drop: int | None = None
    #: Bytes that the role puts in place of a beat's, by number of the beat.
    alter: dict[int, bytes] = field(default_factory=dict)


def fate(frame, n, shortest, longest):
    """``(counter, bytes that go on, marked with error)`` of a frame; None where nothing goes on."""
    beats = [frame.data[at : at + n] for at in range(0, len(frame.data), n)]
    for k, new in frame.alter.items():
        if k < len(beats):
            beats[k] = new[: len(beats[k])]
    limit = (longest - 1) // n
    dropped = frame.drop is not None and frame.drop < len(beats)
    long = len(frame.data) > longest
    if dropped and not (long and frame.drop > limit):
        rest = b"".join(beats[: frame.drop + 1])
        return "dropped", rest if frame.drop else None, True
    if long:
        return "oversize", b"".join(beats[: limit + 1]), True
    data = b"".join(beats)
    if frame.error:
        return "damaged", data, True
    if len(data) < shortest:
        return "runt", data, True
    return "passed", data, False


def expected(frames, n, shortest, longest, store_and_forward):
    """Frames that leave, as ``(bytes, error)``, and the counters."""
    out, counts = [], dict.fromkeys(("passed", "dropped", "oversize", "damaged", "runt"), 0)
    for frame in frames:
        name, data, error = fate(frame, n, shortest, longest)
        counts[name] += 1
        if data is not None and not (error and store_and_forward):
            out.append((data, error))
    return out, counts


class Role:
    """A role of ``latency`` registers; does what the frames say, and noise where nothing is shown.

    ``seen`` collects the bytes of the frames that it was shown.
    """

    background = True

    def __init__(self, tap, frames, latency, rng):
        self.tap, self.frames, self.rng = tap, frames, rng
        self.registers = deque([self._noise()] * latency, latency)
        self.seen = []

    def _noise(self):
        return True, True, self.rng.getrandbits(32)

    async def __call__(self, ctx):
        tap, n, number, beat = self.tap, len(self.tap.data) // 8, -1, 0
        while True:
            for port, value in zip(
                (tap.drop, tap.alter, tap.data), self.registers[-1], strict=True
            ):
                ctx.set(port, value)
            _, _, step, valid, shown = await ctx.tick().sample(tap.step, tap.valid, tap.beat)
            if not step:
                continue
            if not valid:
                self.registers.appendleft(self._noise())
                continue
            if shown.first:
                number, beat = number + 1, 0
                self.seen.append(b"")
            self.seen[-1] += int(shown.data).to_bytes(n, "little")[: n - shown.empty]
            frame = self.frames[number]
            new = frame.alter.get(beat)
            word = int.from_bytes(new, "little") if new else self.rng.getrandbits(8 * n)
            self.registers.appendleft((frame.drop == beat, new is not None, word))
            beat += 1


def counters(ctx, csr):
    """The counters of a bridge by name."""
    names = [r.name for r in BRIDGE_BLOCK.registers if r.access == "ro"]
    return {name: ctx.get(getattr(csr, name)) for name in names}


def feed(stream, frames, rng, idle=0.3):
    """A bench that sends ``frames``, each ``(bytes, error)``."""

    async def put(ctx):
        for frame, error in frames:
            await packet_put(ctx, stream, frame, error, rng=rng, idle=idle)

    return put


def drain(stream, sink, count, rng, stall=0.3):
    """A bench that takes ``count`` frames, as ``(bytes, error)``, into list ``sink``."""

    async def get(ctx):
        while len(sink) < count:
            sink.append(await packet_get(ctx, stream, rng=rng, stall=stall))

    return get
