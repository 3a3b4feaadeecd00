"""The trace core against a naive model: random signals, triggers and pauses of the reader."""

import pytest
from part_sizes import at_sizes
from streams import make_rng, run, seeds
from trebuchet.cores.csr import Register
from trebuchet.cores.probe.signals import find_signals
from trebuchet.cores.probe.trace import MAX_WIDTH, TraceCore, pack_fields
from trebuchet.cores.shell import Shell
from trebuchet.cores.shell_config import ShellConfig
from trebuchet.models.capture import cycles_of
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.plan import PlanError
from trebuchet.sim.tops import source
from trebuchet.soc.build import shell_config
from trebuchet.soc.plans import plan_of, sim_board

ARM, STOP, REWIND = 1, 2, 4


async def _strobe(ctx, core, bits):
    ctx.set(core.csr.control, bits)
    await ctx.tick()
    ctx.set(core.csr.control, 0)


async def _read(ctx, core, words, rng):
    """Records as a bus reads them: any register of the window, with random pauses."""
    await _strobe(ctx, core, REWIND)
    values = []
    for _ in range(ctx.get(core.csr.records) * words):
        for _ in range(rng.randint(4, 7)):
            await ctx.tick()
        k = rng.randrange(32)
        values.append(ctx.get(getattr(core.csr, f"window_{k}")))
        ctx.set(getattr(core.csr, f"window_{k}_read"), 1)
        await ctx.tick()
        ctx.set(getattr(core.csr, f"window_{k}_read"), 0)
    rows = [values[k : k + words] for k in range(0, len(values), words)]
    return [(row[0], sum(value << 32 * k for k, value in enumerate(row[1:]))) for row in rows]


def check_capture(width, depth, seed, stamp_width=4, time_width=16):
    """Capture random samples around a trigger, read all records, and compare them."""
    rng = make_rng(seed, f"trace {width} {depth}")
    core = TraceCore((("a", width),), depth, stamp_width, time_width)
    before = rng.randrange(depth)
    target = 1
    samples = []  # of each cycle, by number
    captured = {}

    async def drive(ctx):
        value = 0
        while "rows" not in captured:
            if rng.random() < 0.3:
                value = rng.choice([0, 1, rng.getrandbits(width)])
            ctx.set(core.data, value)
            samples.append(value)
            await ctx.tick()

    async def control(ctx):
        csr = core.csr
        for name, bits in (("value", target), ("mask", (1 << width) - 1)):
            for k in range(-(-width // 32)):
                ctx.set(getattr(csr, f"{name}_{k}"), bits >> 32 * k & 0xFFFFFFFF)
        ctx.set(csr.before, before)
        for _ in range(rng.randint(3, 50)):
            await ctx.tick()
        await _strobe(ctx, core, ARM)
        while not ctx.get(csr.state) & 4:
            await ctx.tick()
        captured["state"] = ctx.get(csr.state)
        captured["end"] = ctx.get(csr.end_time)
        captured["trigger"] = ctx.get(csr.trigger_time)
        captured["rows"] = await _read(ctx, core, core.words, rng)

    run(core, drive, control, limit=200 * depth * core.words + 20_000, seed=seed)
    rows, end, trigger = captured["rows"], captured["end"], captured["trigger"]
    assert captured["state"] == 6
    cycles = cycles_of([stamp for stamp, _ in rows], stamp_width, end)
    assert sum(cycle >= trigger for cycle in cycles) == depth - before
    assert trigger in cycles
    held = dict(zip(cycles, (sample for _, sample in rows), strict=True))
    value = None
    # A cycle's number is that of the core's counter, two behind the sample's place here.
    for cycle in range(cycles[0], end + 1):
        value = held.get(cycle, value)
        assert value == samples[cycle - 2], (cycle, rows)
    assert samples[trigger - 2] == target


@seeds()
@pytest.mark.parametrize(("width", "depth"), [(1, 4), (32, 16), (33, 8), (70, 16)])
def test_a_capture_has_every_sample_from_the_trigger_on(width, depth, seed):
    check_capture(width, depth, seed)


@at_sizes("probe.trace.TraceCore")
def test_trace_core_at_sizes(size):
    """All records of the default depth, of the example's width (docs/probe.md)."""
    check_capture(114, seed=1, **size)


def test_a_capture_that_is_stopped_has_no_trigger():
    core = TraceCore((("a", 1),), 4, stamp_width=4, time_width=16)

    async def bench(ctx):
        ctx.set(core.csr.value_0, 1)
        ctx.set(core.csr.mask_0, 1)
        await _strobe(ctx, core, STOP)  # without a capture: nothing
        await ctx.tick()
        assert ctx.get(core.csr.state) == 0
        await _strobe(ctx, core, ARM)
        await ctx.tick().repeat(5)
        assert ctx.get(core.csr.state) == 1
        await _strobe(ctx, core, STOP)
        await ctx.tick()
        assert ctx.get(core.csr.state) == 4

    run(core, bench, limit=100)


def test_words_of_signals():
    words = pack_fields((("a", 30), ("b", 4)))
    assert [[(f.name, f.offset, f.width) for f in word] for word in words] == [
        [("a", 0, 30), ("b", 30, 2)],
        [("b", 0, 2)],
    ]


@pytest.mark.parametrize(
    ("signals", "depth", "message"),
    [
        ((), 16, "1 to 512 bits, not 0"),
        ((("a", MAX_WIDTH + 1),), 16, "1 to 512 bits, not 513"),
        ((("a", 1),), 12, "power of two, 4 to 8192, not 12"),
    ],
)
def test_parameters_are_checked(signals, depth, message):
    with pytest.raises(ValueError, match=message):
        TraceCore(signals, depth)


def test_paths_of_signals():
    core = TraceCore((("a", 3),), 4)
    assert [(n, len(v)) for n, v in find_signals({"probe": core}, "probe.csr.before")] == [
        ("probe.csr.before", 2)
    ]
    with pytest.raises(TrebuchetError, match="there is no part 'prob'"):
        find_signals({"probe": core}, "prob.csr")
    with pytest.raises(TrebuchetError, match="'probe.csr' has no 'nothing'"):
        find_signals({"probe": core}, "probe.csr.nothing")


def test_paths_of_a_shell():
    """A whole group, and wrong probes of a plan: one line that says what there is."""
    shell = Shell(shell_config(sim_board(plan_of(board="sim", probes=["tick", "other_tx"]))))
    (mask,) = (r for r in shell.csr_probe.signature.block.registers if r.name == "mask_0")
    assert [field.name for field in mask.fields] == ["tick", "other_tx__payload__data"]
    for probes, said in (
        (["tcp.nothing"], "probe 'tcp.nothing': 'tcp' has no 'nothing'; there is: segment, "),
        (["tpc"], "probe 'tpc': there is no part 'tpc', did you mean 'tcp'?"),
        (["tcp"], "of at most 512; name single signals, such as tcp.segment.payload.mac, instead"),
        (["tx", "tx.valid"], "probes: 'tx.valid' is in two of them; leave one out"),
    ):
        with pytest.raises(TrebuchetError) as caught:
            Shell(shell_config(sim_board(plan_of(board="sim", probes=probes))))
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("probes", "depth", "said"),
    [
        (["tx.valid"], 100, "the depth of probes must be a power of two from 16 to 8192, not 100"),
        (["tx.valid"], 1 << 14, "must be a power of two from 16 to 8192, not 16384"),
        ([], 64, "--probe-depth is for probes; name some with --probe"),
        (["Tx..y"], None, "a probe must be names joined by dots, like tcp.tx_segment.valid, not "),
        (["tx", "tx"], None, "probe 'tx' is named twice; name it once"),
    ],
)
def test_wrong_probes_of_a_plan(probes, depth, said):
    with pytest.raises(TrebuchetError) as caught:
        plan_of(board="sim", probes=probes, depth=depth)
    assert said in str(caught.value)


def test_probes_need_firmware():
    plan = plan_of(board="sim", probes=["tx.valid"])
    with pytest.raises(TrebuchetError, match="probes are read by firmware, in board or bridge"):
        source("fabric", plan)
    with pytest.raises(PlanError, match="a shell without firmware must have no probes"):
        ShellConfig(plan=plan, managed=False)


def test_only_a_word_that_is_read_has_a_strobe():
    for access, width in (("rw", 8), ("ro", 33)):
        with pytest.raises(ValueError, match="must be ro, of one word, to have `reads`"):
            Register("shown", access, width, reads=True)
