"""The memory arbiter: bandwidth that receive DMA keeps beside a slow writer, and area.

``memory.rx_dma_share``: rate of a shell's receive DMA beside a slow writer over its rate alone. The
arbiter is that of a shell with firmware and a role that does not promise prompt writes: five ports,
receive DMA in class 0, a buffer at the role's port. The memory takes a command and a beat in every
cycle. The DMA writes bursts of 64 beats as fast as they go; the writer, at the role's port, has the
same bursts, and a beat in a hundred cycles. The rate is that in the time of one of the writer's
bursts, from within it to within the next. ``memory.rx_dma_share_dead`` is the same beside a writer
that stopped in the middle of a burst. No writer waits for ``wdone``, which never comes.

``memory.arbiter_lut4``: area of a shell's arbiter whose ports are all prompt, as those of boards.
"""

import warnings

from amaranth.hdl import UnusedElaboratable
from amaranth.sim import Simulator

from ..cores.memory_arbiter import MemoryArbiter
from ..cores.shell import Shell
from ..cores.shell_config import ShellConfig
from ..models.plan import Plan
from .area import area_job
from .job import Job, Netlist, Values

__all__ = ["area", "share"]

BURST = 64
#: The writer has a beat in as many cycles.
PACE = 100
#: Cycles until the rate is measured, and for how long.
BEGIN, SPAN = 400, BURST * PACE
#: Beats after which the dead writer stops.
STOPS = 3
#: A role whose memory port is its own affair.
ROLE = "verilog_example"


def _arbiter(role: str) -> MemoryArbiter:
    """The arbiter of a shell with ``role``, whose other parts are left unused."""
    warnings.simplefilter("ignore", UnusedElaboratable)
    return Shell(ShellConfig(plan=Plan.of_roles(role)))._arbiter


def _writer(port, pace=1, beats=None):
    """Write bursts one after the other: a beat every ``pace`` cycles, and none after ``beats``."""

    async def bench(ctx):
        owed: list[int] = []  # beats that are missing, of each accepted command
        sent, since = 0, pace
        ctx.set(port.cmd.payload, {"write": 1, "addr": 0, "beats": BURST - 1, "tag": 0})
        ctx.set(port.cmd.valid, 1)
        ctx.set(port.wdata.payload.strb, (1 << len(port.wdata.payload.strb)) - 1)
        while True:
            offers = bool(owed) and since >= pace and (beats is None or sent < beats)
            ctx.set(port.wdata.valid, offers)
            ctx.set(port.wdata.payload.last, offers and owed[0] == 1)
            _, _, accepted, taken = await ctx.tick().sample(port.cmd.ready, port.wdata.ready)
            since += 1
            if offers and taken:
                sent, since = sent + 1, 1
                owed[0] -= 1
                if not owed[0]:
                    owed.pop(0)
            if accepted:
                owed.append(BURST)

    return bench


def _rate(pace: int = 0, beats: int | None = None) -> float:
    """Beats a cycle of the DMA, beside a writer if ``pace`` is not 0."""
    dut = _arbiter(ROLE)
    dma = dut.ports[0]
    (role,) = set(range(dut.n)) - dut.prompt
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    count = 0

    async def measure(ctx):
        nonlocal count
        ctx.set(dut.mem.cmd.ready, 1)
        ctx.set(dut.mem.wdata.ready, 1)
        await ctx.tick().repeat(BEGIN)
        for _ in range(SPAN):
            _, _, valid, ready = await ctx.tick().sample(dma.wdata.valid, dma.wdata.ready)
            count += valid and ready

    simulator.add_testbench(_writer(dma), background=True)
    if pace:
        simulator.add_testbench(_writer(dut.ports[role], pace, beats), background=True)
    simulator.add_testbench(measure)
    simulator.run()
    return count / SPAN


def share() -> Job:
    """Return the measurement of shares, cycle-accurate in Amaranth's simulator."""

    def measure() -> Values:
        alone = _rate()
        return {
            "memory.rx_dma_share": round(_rate(PACE) / alone, 4),
            "memory.rx_dma_share_dead": round(_rate(PACE, STOPS) / alone, 4),
        }

    return Job((Netlist(lambda: _arbiter(ROLE)),), measure, tools=("amaranth",))


def area() -> Job:
    """Return the measurement of area on an ECP5."""
    return area_job(lambda: _arbiter("ecg"), {"memory.arbiter_lut4": "LUT4"}, "ecp5")
