"""Cycles of the ECG gateware: the pipeline over a full block of 12 beats, and the network a beat.

The reference (sopc-cloud-platform, 6.4) needs 9,728 cycles for 4,096 samples with 12 beats, and 61
cycles of the network a beat. The block is one of a synthetic record in which the golden model
finds exactly 12 beats. A run whose result is not the golden model's counts for nothing.
"""

import numpy as np
from amaranth.sim import Simulator

from ..cores.roles.ecg.network import Network
from ..cores.roles.ecg.pipeline import EcgPipeline
from ..models.ecg import model
from ..models.ecg.synthetic import synthesise

__all__ = ["block_of", "measure", "network_cycles", "pipeline_cycles"]

BEATS = 12
#: Far above anything that could be right.
LIMIT = 30_000


def block_of(beats: int) -> np.ndarray:
    """The first full block of a synthetic record in which the golden model finds ``beats``."""
    samples, _, _ = synthesise(5)
    for start in range(0, len(samples) - model.MAX_SAMPLES, 64):
        block = samples[start : start + model.MAX_SAMPLES]
        if len(model.classify_block(block)) == beats * model.RECORD_BYTES:
            return block
    raise RuntimeError(f"the synthetic record has no block of {beats} beats")


class _Bench:
    """A simulation of one component that counts clock cycles."""

    def __init__(self, dut):
        self.dut = dut
        self.cycle = 0
        self.simulator = Simulator(dut)
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self._count, background=True)

    async def _count(self, ctx):
        async for _ in ctx.tick():
            self.cycle += 1
            if self.cycle > LIMIT:
                raise RuntimeError(f"{type(self.dut).__name__} is not done after {LIMIT} cycles")

    def run(self, testbench, *background):
        for bench in background:
            self.simulator.add_testbench(bench, background=True)
        self.simulator.add_testbench(testbench)
        self.simulator.run()


def _packed(record) -> bytes:
    return record.as_bits().to_bytes(model.RECORD_BYTES, "little")


def pipeline_cycles(samples: np.ndarray) -> tuple[int, bytes]:
    """``(cycles, result)`` from ``start`` to the last record; nobody makes the pipeline wait."""
    dut = EcgPipeline()
    bench = _Bench(dut)
    pairs = samples.reshape(-1, 2).tolist()
    records = []

    async def drive(ctx):
        ctx.set(dut.record.ready, 1)
        ctx.set(dut.samples, len(samples))
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        ctx.set(dut.pair.valid, 1)
        for number, (even, odd) in enumerate(pairs, 1):
            ctx.set(dut.pair.payload, {"even": even, "odd": odd, "last": number == len(pairs)})
            await ctx.tick().until(dut.pair.ready)
        ctx.set(dut.pair.valid, 0)
        await ctx.tick().until(~dut.busy)

    async def take(ctx):
        async for _, _, valid, record in ctx.tick().sample(dut.record.valid, dut.record.payload):
            if valid:
                records.append(_packed(record))

    bench.run(drive, take)
    return bench.cycle, b"".join(records)


def network_cycles(samples: np.ndarray) -> tuple[list[int], bytes]:
    """``(cycles of each beat, result)``: from the transfer on ``go`` to that of the record."""
    dut = Network(model.load_weights())
    bench = _Bench(dut)
    beats = model.reported(samples)
    windows = np.stack([model.window(samples, place) for place, _ in beats])
    vectors = model.features(windows, np.array([rr for _, rr in beats]))
    cycles, records = [], []

    async def drive(ctx):
        ctx.set(dut.record.ready, 1)
        for (place, _), vector in zip(beats, vectors.tolist(), strict=True):
            ctx.set(dut.f_valid, 1)
            for index, value in enumerate(vector):
                ctx.set(dut.f_index, index)
                ctx.set(dut.f_value, value)
                await ctx.tick()
            ctx.set(dut.f_valid, 0)
            ctx.set(dut.go.payload, place // 4)
            ctx.set(dut.go.valid, 1)
            await ctx.tick().until(dut.go.ready)
            ctx.set(dut.go.valid, 0)
            begin = bench.cycle
            record = await ctx.tick().sample(dut.record.payload).until(dut.record.valid)
            cycles.append(bench.cycle - begin)
            records.append(_packed(record[0]))

    bench.run(drive)
    return cycles, b"".join(records)


def measure() -> dict[str, float]:
    samples = block_of(BEATS)
    golden = model.classify_block(samples)
    pipeline, result = pipeline_cycles(samples)
    network, network_result = network_cycles(samples)
    if result != golden or network_result != golden:
        raise RuntimeError("the gateware's result is not the golden model's: figures mean nothing")
    return {"ecg.pipeline_cycles": pipeline, "ecg.network_cycles": max(network)}
