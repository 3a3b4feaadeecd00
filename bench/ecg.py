"""Cycles of the ECG gateware: the pipeline a full block of 12 beats, and the network a beat.

The reference (sopc-cloud-platform, 6.4) needs 9,728 cycles for 4,096 samples with 12 beats, and 61
cycles of the network a beat. The pipeline's figure is the sustained one, from the end of one block
to that of the next; the network's is that of the one which several pipelines share. The block is
one of a synthetic record in which the golden model finds exactly 12 beats. A run whose result is
not the golden model's counts for nothing.
"""

import numpy as np
from amaranth.sim import Simulator

from ..cores.roles.ecg.network import Network
from ..cores.roles.ecg.pipeline import EcgPipeline
from ..cores.roles.ecg.window import FEATURE_ORDER
from ..models.ecg import model
from ..models.ecg.second import SECOND
from ..models.ecg.synthetic import synthesise
from .job import Job, Netlist, Values

__all__ = ["block_of", "cycles", "network_cycles", "pipeline_cycles"]

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


def _pipeline(preset: model.Preset) -> EcgPipeline:
    return EcgPipeline(preset=preset)


def _network() -> Network:
    return Network(model.load_weights(), order=FEATURE_ORDER)


def pipeline_cycles(
    samples: np.ndarray, blocks: int = 3, preset: model.Preset = model.FAITHFUL
) -> tuple[int, bytes]:
    """``(cycles, result)`` of the last of some equal blocks in succession: from the end of the
    block before to its own. Nobody makes the pipeline wait."""
    dut = _pipeline(preset)
    bench = _Bench(dut)
    pairs = samples.reshape(-1, 2).tolist()
    records: list[bytes] = []
    ends: list[int] = []

    async def drive(ctx):
        whole = {"samples": len(samples), "low": 8, "high": len(samples) // 4 - 7}
        ctx.set(dut.block.payload, whole)
        for _ in range(blocks):
            ctx.set(dut.block.valid, 1)
            await ctx.tick().until(dut.block.ready)
            ctx.set(dut.block.valid, 0)
            ctx.set(dut.pair.valid, 1)
            for number, (even, odd) in enumerate(pairs, 1):
                ctx.set(dut.pair.payload, {"even": even, "odd": odd, "last": number == len(pairs)})
                await ctx.tick().until(dut.pair.ready)
            ctx.set(dut.pair.valid, 0)

    async def take(ctx):
        ctx.set(dut.record.ready, 1)
        ctx.set(dut.end.ready, 1)
        while len(ends) < blocks:
            sampled = (dut.record.valid, dut.record.payload, dut.end.valid)
            _, _, valid, record, end = await ctx.tick().sample(*sampled)
            if valid and len(ends) == blocks - 1:
                records.append(_packed(record))
            if end:
                ends.append(bench.cycle)

    bench.run(take, drive)
    return ends[-1] - ends[-2], b"".join(records)


def network_cycles(samples: np.ndarray) -> tuple[list[int], bytes]:
    """``(cycles of each beat, result)``: from the transfer of the last input to the record's."""
    dut = _network()
    bench = _Bench(dut)
    beats = model.reported(samples)
    windows = np.stack([model.window(samples, place) for place, _ in beats])
    vectors = model.features(windows, np.array([rr for _, rr in beats]))
    cycles, records = [], []

    async def drive(ctx):
        ctx.set(dut.record.ready, 1)
        for (place, _), vector in zip(beats, vectors.tolist(), strict=True):
            ctx.set(dut.vector.valid, 1)
            for feature in FEATURE_ORDER:
                last = feature == FEATURE_ORDER[-1]
                value = {"value": vector[feature], "last": last, "index": place // 4}
                ctx.set(dut.vector.payload, value)
                await ctx.tick().until(dut.vector.ready)
            ctx.set(dut.vector.valid, 0)
            begin = bench.cycle
            sampled = await ctx.tick().sample(dut.record.payload.record).until(dut.record.valid)
            cycles.append(bench.cycle - begin)
            records.append(_packed(sampled[0]))

    bench.run(drive)
    return cycles, b"".join(records)


def cycles() -> Job:
    """Return the measurement of the pipelines of both presets, and of the network."""
    presets = (model.FAITHFUL, SECOND)
    netlists = [Netlist(lambda preset=preset: _pipeline(preset)) for preset in presets]  # type: ignore[misc]
    return Job((*netlists, Netlist(_network)), _measure, tools=("amaranth", "numpy"))


def _measure() -> Values:
    samples = block_of(BEATS)
    network, result = network_cycles(samples)
    values: Values = {"ecg.network_cycles": max(network)}
    _check(result, samples, model.FAITHFUL)
    for preset, suffix in ((model.FAITHFUL, ""), (SECOND, "_second")):
        cycles, result = pipeline_cycles(samples, preset=preset)
        _check(result, samples, preset)
        values[f"ecg.pipeline_cycles{suffix}"] = cycles
    return values


def _check(result: bytes, samples: np.ndarray, preset: model.Preset) -> None:
    if result != model.classify_block(samples, preset=preset):
        raise RuntimeError("the gateware's result is not the golden model's: figures mean nothing")
