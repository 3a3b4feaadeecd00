"""The ECG role with golden models in place of its pipelines, and clients that give it jobs."""

import numpy as np
from amaranth import Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In
from streams import MemoryResponder, make_rng, run, stream_checker, stream_get, stream_put
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.roles.ecg.bank import PipelineSignature
from trebuchet.cores.roles.ecg.role import EcgRole
from trebuchet.models.ecg import model
from trebuchet.models.status import Status

__all__ = ["RING_LOG2", "SESSIONS", "Work", "play"]

RING_LOG2 = 14
SESSIONS = 4
#: Rings of the sessions, then their results, then the role's scratch memory.
RESULTS, SCRATCH, SIZE = SESSIONS << RING_LOG2, 0x18000, 0x1A000


class Sockets(wiring.Component):
    """Stands where the role's pipelines would be; test benches drive the ports."""

    def __init__(self, n, width):
        super().__init__(
            {
                "pipelines": In(PipelineSignature(width)).array(n),
                "load": In(stream.Signature(unsigned(16), always_ready=True)),
                "reload": In(1),
            }
        )

    def elaborate(self, platform):
        return Module()


def pipeline_model(port, rng):
    """Takes blocks and pairs, holds two blocks, gives the records of the golden model."""
    blocks = []  # [samples wanted, low, high, samples so far]

    async def take(ctx):
        while True:
            while len(blocks) == 2:
                await ctx.tick()
            block = await stream_get(ctx, port.block, rng=rng)
            samples = []
            while True:
                pair = await stream_get(ctx, port.pair, rng=rng, stall=0.1)
                samples += [pair.even, pair.odd]
                if pair.last:
                    break
            assert len(samples) - block.samples in (0, 1), "pairs do not fit the block's size"
            blocks.append((np.array(samples[: block.samples], np.int16), block.low, block.high))

    async def give(ctx):
        while True:
            while not blocks:
                await ctx.tick()
            samples, low, high = blocks[0]
            for beat in model.unpack_records(model.classify_block(samples)):
                if low <= beat.position // 4 < high:
                    record = {
                        "position": beat.position,
                        "label": beat.label,
                        "zero": 0,
                        "scores": list(beat.scores),
                    }
                    await stream_put(ctx, port.record, record, rng=rng, idle=0.8)
            await stream_put(ctx, port.end, 0, rng=rng)
            blocks.pop(0)

    take.background = give.background = True
    return take, give


class Work:
    """One job and what must come of it: bytes, or a status that is an error."""

    def __init__(self, samples, expected, kind=JobKind.DATA, first=0, **job):
        operand = samples if isinstance(samples, bytes) else samples.astype("<i2").tobytes()
        self.operand, self.expected = operand, expected
        self.job = {"kind": kind, "first": first, "length": len(operand), "room": 1024, **job}


def play(seed, works, *others, width=32, pipelines=1, loadable=False, stall=0.3, limit=150_000):
    """Run ``works[session]``, lists of :class:`Work`; one job of a session at a time.

    ``others``: functions that make a test bench of the role and the list of open jobs' sessions.
    Returns the cycles taken and the sessions in the order of their answers.
    """
    rng = make_rng(seed, "play")
    memory = bytearray(rng.randbytes(SIZE))
    dut = EcgRole(
        width,
        tag_width=4,
        pipelines=pipelines,
        scratch=SCRATCH,
        sessions=SESSIONS,
        loadable=loadable,
    )
    dut.bank = Sockets(pipelines, dut.bank.pipeline_signature.width)
    waiting = [list(work) for work in works]
    under_way, order = {}, []

    def place(session, work):
        ring, offset = session << RING_LOG2, rng.randrange(1 << RING_LOG2)
        for i, byte in enumerate(work.operand):
            memory[ring + (offset + i) % (1 << RING_LOG2)] = byte
        return work.job | {
            "source": rng.randrange(16),
            "session": session,
            "id": rng.getrandbits(32),
            "base": ring,
            "offset": offset,
            "ring_log2": RING_LOG2,
            "result": RESULTS + 1024 * session,
        }

    async def send(ctx):
        gaps = make_rng(seed, "send")
        while any(waiting):
            idle = [s for s in range(len(works)) if waiting[s] and s not in under_way]
            if not idle:
                await ctx.tick()
                continue
            session = gaps.choice(idle)
            work = waiting[session].pop(0)
            job = place(session, work)
            under_way[session] = job, work.expected
            await stream_put(ctx, dut.job, job, rng=gaps)

    async def receive(ctx):
        for _ in range(sum(map(len, works))):
            answer = await stream_get(ctx, dut.answer, rng=make_rng(seed, "receive"), stall=stall)
            job, expected = under_way.pop(answer.session)
            order.append(answer.session)
            assert (answer.source, answer.id) == (job["source"], job["id"])
            if isinstance(expected, Status):
                assert (answer.status, answer.length) == (expected, 0), job
                continue
            assert answer.status == Status.OK, job
            at = job["result"]
            assert memory[at : at + answer.length] == expected, job

    models = []
    for i in range(pipelines):
        models += pipeline_model(dut.bank.pipelines[i], make_rng(seed, f"pipeline{i}"))
    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"))
    checkers = [stream_checker(s) for s in (dut.answer, dut.mem.cmd, dut.mem.wdata)]
    models += [other(dut, under_way) for other in others]
    cycles = run(dut, send, receive, *models, responder, *checkers, limit=limit, seed=seed)
    return cycles, order
