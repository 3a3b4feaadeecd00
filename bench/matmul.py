"""Rate of the matrix-multiply role: what its MACs do of what they could, and operations a second.

The role is the one that an ECP5-85F takes: 32 MACs and a data path of 64 bits. It runs in
Verilator, before a memory that answers after 40 cycles and whose streams pause in two cycles of
five: 0.6 beats a cycle each way, where the MACs need 0.5 of operands and 0.25 of results. Every
result is held against the golden model: a run with a wrong one counts for nothing.

The reference (distributed-fpga-framework, 4.3) does an operation in 7 ms, and 1,054 a second on a
board of five cores.
"""

import random
from pathlib import Path
from typing import Any

from ..cores.roles.matmul.role import MatmulRole
from ..models import matmul
from ..models.status import Status
from ..sim.build import Source, build
from ..sim.roles import Job, role_source, run_jobs
from . import job
from .fmax import Ecp5, clock_job

__all__ = ["CASES", "FPGA", "MACS", "WIDTH", "clock", "sustained", "utilisation"]

MACS = 32
WIDTH = 64
#: A clock higher than the target's makes place and route work longer, not better.
FPGA = Ecp5("LFE5U-85F", speed=6, target=75)
#: (jobs, pairs a job): clients that each send one pair a message, and few that send many.
CASES = ((64, 1), (4, 16))


def _role() -> MatmulRole:
    return MatmulRole(WIDTH, macs=MACS)


def sustained(binary: Path, jobs: int, pairs: int, **memory: Any) -> tuple[float, float]:
    """``(utilisation, cycles of a product)`` of a run, from its first job's coming to its end.

    ``memory`` are options of :func:`~trebuchet.sim.roles.run_jobs`.
    """
    rng = random.Random(f"{jobs}/{pairs}")
    operands = [matmul.random_operand(rng, pairs) for _ in range(jobs)]
    batch = [Job(operand, room=len(operand) // 2) for operand in operands]
    run = run_jobs(binary, batch, limit=4_000_000, **memory)
    for number, (answer, operand) in enumerate(zip(run.answers, operands, strict=True)):
        if answer.status != Status.OK or answer.result != matmul.result(operand):
            raise RuntimeError(f"the result of job {number} is not the golden model's")
    cycles = max(a.answered for a in run.answers) - min(a.taken for a in run.answers)
    return run.registers["mac_cycles"] / cycles, cycles / (jobs * pairs)


def _worst(source: Source) -> tuple[float, float]:
    binary = build(source)
    runs = [sustained(binary, *case, latency=(40, 40), memory_stall=0.4) for case in CASES]
    return min(share for share, _ in runs), max(cycles for _, cycles in runs)


def utilisation() -> job.Job:
    """Return the measurement of the share of cycles in which the MACs work."""
    source = role_source(_role())
    return job.Job((source,), lambda: {"matmul.utilisation": round(_worst(source)[0], 4)})


def clock() -> job.Sampled:
    """Return the measurement of the clock alone, and of operations a second at that clock."""
    source = role_source(_role())

    def figures(mhz: float, cells: dict[str, int]) -> job.Values:
        cycles = _worst(source)[1]
        return {
            "matmul.fmax_85f": round(mhz, 1),
            "matmul.ops_per_s_85f": int(mhz * 1e6 / cycles),
        }

    return clock_job(_role(), FPGA, figures, source)
