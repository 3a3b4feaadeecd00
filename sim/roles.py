"""One role in Verilator: a batch of jobs in, their answers and cycles out, the contract checked.

::

    binary = build(role_source(EcgRole(64)))
    run = run_jobs(binary, [Job(samples.tobytes(), room=4096) for samples in blocks])
    assert [a.result for a in run.answers] == [classify_block(samples) for samples in blocks]

The harness (``sim/role_harness``) checks every rule of ``cores/roles/contract.py`` and the stream
rules at every port, in every cycle, before a memory whose latency, order and stalls are options.
It takes anything with the ports of ``RoleSignature``: a role, or a ``RoleSlot`` with one, whose
switches are then among the registers.
"""

import random
import struct
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..cores.roles.contract import AnswerLayout, JobKind, JobLayout
from ..models.errors import TrebuchetError
from ..models.paths import build_folder
from ..soc.verilog import check_verilog
from .build import Source
from .flat import FlatTop, csr_members
from .process import run_limited

__all__ = [
    "Answer",
    "Job",
    "RoleFault",
    "RoleRun",
    "Write",
    "place_jobs",
    "role_source",
    "run_jobs",
]

TOP = "trebuchet_role"
HARNESS = Path(__file__).resolve().parent / "role_harness"
_MEMORY = {
    "cmd": ("write", "addr", "beats", "tag"),
    "wdata": ("data", "strb", "last"),
    "rdata": ("data", "tag", "last"),
    "wdone": ("tag",),
}


class RoleFault(TrebuchetError):
    """The role broke a rule of its contract, or did not answer."""


@dataclass(frozen=True)
class Job:
    """One job. What is None is chosen: ``id`` counts up, the rest is random."""

    operand: bytes
    room: int = 4096
    kind: JobKind = JobKind.DATA
    first: int = 1
    source: int | None = None
    session: int | None = None
    id: int | None = None
    #: Where in its ring the operand begins.
    offset: int | None = None
    #: log2 of the ring's size; None: the smallest that holds the operand, at least 10.
    ring_log2: int | None = None
    #: Cycles before it is offered.
    wait: int = 0


@dataclass(frozen=True)
class Write:
    """A register to write between jobs: ``rw`` keeps the value, ``stb`` and ``w1c`` are strobes."""

    register: str
    value: int = 1
    #: Cycles to wait before.
    wait: int = 0
    #: Wait until every job so far is answered.
    idle: bool = True


@dataclass(frozen=True)
class Answer:
    """What came of a job; ``taken`` and ``answered`` are cycles since reset."""

    status: int
    result: bytes
    taken: int
    answered: int


@dataclass(frozen=True)
class RoleRun:
    """What came of a batch: answers in the order of the jobs, cycles, registers at the end."""

    answers: list[Answer]
    cycles: int
    registers: dict[str, int] = field(default_factory=dict)


class RoleTop(FlatTop):
    """Flat ports around a component with the ports of ``RoleSignature``."""

    def __init__(self, role):
        super().__init__(role)
        self.width = len(role.mem.wdata.payload.data)
        self.stream("job", role.job, [name for name, _ in JobLayout], False)
        self.stream("answer", role.answer, [name for name, _ in AnswerLayout], True)
        for name, fields in _MEMORY.items():
            self.stream(f"mem_{name}", getattr(role.mem, name), fields, name in ("cmd", "wdata"))
        self.readable, self.writable = [], []  # register names; (register name, is a strobe)
        for member, block in csr_members(role):
            self._registers(getattr(role, member), block)

    def _registers(self, csr, block):
        for register in block.registers:
            name, access = register.name, register.access
            if access in ("ro", "w1c"):
                self.readable.append(name)
                self.port(f"csr_{name}", getattr(csr, name), True)
            if access == "w1c":
                self.writable.append((f"{name}_clear", True))
                self.port(f"csr_{name}_clear", getattr(csr, f"{name}_clear"), False)
            if access in ("rw", "stb"):
                self.writable.append((name, access == "stb"))
                self.port(f"csr_{name}", getattr(csr, name), False)


def role_source(role, files: Iterable[Path] = ()) -> Source:
    """The :class:`~trebuchet.sim.build.Source` of a role; ``files`` are more Verilog.

    Files that ``role.verilog_files`` names are added by themselves.
    """
    top = RoleTop(role)
    resets = {
        f"csr_{r.name}": r.reset for _, b in csr_members(role) for r in b.registers if r.reset
    }
    writes = [
        f"X({i}, csr_{name}, {int(strobe)}, {resets.get(f'csr_{name}', 0)})"
        for i, (name, strobe) in enumerate(top.writable)
    ]
    header = [f"#define TREBUCHET_WIDTH {top.width}"]
    header.append(f"#define TREBUCHET_SET(X) {' '.join(writes)}")
    header.append(f"#define TREBUCHET_GET(X) {' '.join(f'X(csr_{name})' for name in top.readable)}")
    header.append(f"// writable: {' '.join(name for name, _ in top.writable)}")
    header.append(f"// readable: {' '.join(top.readable)}")
    sources = tuple(Path(f) for f in (*files, *getattr(role, "verilog_files", ())))
    check_verilog(getattr(role, "verilog_files", ()), build_folder("tools"))
    texts = {"top.v": top.verilog(TOP), "role_ports.h": "\n".join(header) + "\n"}
    return Source("role", TOP, texts, sources, main=HARNESS / "role.cpp")


def _register_names(binary: Path) -> tuple[list[str], list[str]]:
    """Writable and readable registers of a compiled role."""
    lines = (Path(binary).parent / "role_ports.h").read_text().splitlines()
    found = {line.split(":")[0]: line.split(":")[1].split() for line in lines if line[:2] == "//"}
    return found["// writable"], found["// readable"]


def place_jobs(jobs: Sequence[Job], seed: int, regions: int, base: int = 0):
    """The fields of each job's ``JobLayout`` and its region; and the bytes of memory they need.

    Jobs take turns in ``regions`` regions of memory from ``base`` on: two jobs of the same region
    must not be under way together.
    """
    rng = random.Random(f"jobs/{seed}")
    rings = [_ring(job) for job in jobs]
    ring = 1 << max(rings, default=10)
    # Rings are aligned to their size; a margin on both sides of a result catches stray bytes.
    room = -(-max((job.room for job in jobs), default=0) // 16) * 16 + 256
    stride = ring * -(-(ring + room) // ring)
    start = -(-base // ring) * ring
    placed = []
    for number, job in enumerate(jobs):
        at = start + number % regions * stride
        mask = (1 << rings[number]) - 1
        fields = {
            "kind": job.kind.value,
            "first": job.first,
            "source": rng.randrange(15) if job.source is None else job.source,
            "ring_log2": rings[number],
            "session": rng.getrandbits(17) if job.session is None else job.session,
            "id": number if job.id is None else job.id,
            "base": at,
            "offset": rng.getrandbits(20) & mask if job.offset is None else job.offset,
            "length": len(job.operand),
            "result": at + ring + 128,
            "room": job.room,
        }
        placed.append((fields, number % regions))
    return placed, start + regions * stride


def _batch(operations: Sequence[Job | Write], writable, placed) -> bytes:
    """The batch file."""
    out, number = [], 0
    for op in operations:
        if isinstance(op, Write):
            if op.register not in writable:
                raise TrebuchetError(
                    f"the register must be one of {', '.join(writable)}, not {op.register!r}"
                )
            at = writable.index(op.register)
            out.append(b"W" + struct.pack("<IIBQ", at, op.wait, op.idle, op.value))
            continue
        fields, region = placed[number]
        number += 1
        out.append(b"J" + struct.pack("<BBBBIIIIIIIII", *fields.values(), region, op.wait))
        out.append(op.operand)
    return b"".join(out)


def _ring(job: Job) -> int:
    least = max(10, (len(job.operand) - 1).bit_length() if job.operand else 0)
    if job.ring_log2 is None:
        return least
    if job.ring_log2 > 20 or 1 << job.ring_log2 < len(job.operand):
        raise TrebuchetError(f"the ring's log2 must be {least} to 20, not {job.ring_log2}")
    return job.ring_log2


def run_jobs(
    binary: Path,
    operations: Sequence[Job | Write],
    *,
    seed: int = 1,
    stall: float = 0.0,
    latency: tuple[int, int] = (40, 40),
    memory_stall: float = 0.0,
    reorder: bool = False,
    outstanding: int = 16,
    in_flight: int = 8,
    limit: int = 200_000,
    scratch: tuple[int, int] = (0, 0),
    timeout: float = 600,
) -> RoleRun:
    """Run a batch on the simulator ``build(role_source(…))`` made.

    Parameters
    ----------
    stall, memory_stall : float
        Chance of a pause in a cycle: of jobs and answers, of each stream of the memory port.
    latency : (int, int)
        Bounds of the cycles between a memory command (or a write's last data) and its response.
    reorder : bool
        Memory bursts of different tags come in any order, and reads overtake writes.
    outstanding : int
        Memory commands under way, at most.
    in_flight : int
        Jobs under way, at most.
    limit : int
        Cycles without an answer after which the role is at fault.
    scratch : (int, int)
        Address and size of memory that the role may use besides.
    timeout : float
        Seconds of processor time.

    Raises :class:`RoleFault`, with the cycle and the seed, when a rule is broken.
    """
    writable, readable = _register_names(binary)
    jobs = [op for op in operations if isinstance(op, Job)]
    placed, size = place_jobs(jobs, seed, in_flight, sum(scratch))
    batch = _batch(operations, writable, placed)
    options = {
        "seed": seed,
        "stall": stall,
        "latency-low": latency[0],
        "latency-high": latency[1],
        "memory-stall": memory_stall,
        "reorder": int(reorder),
        "outstanding": outstanding,
        "limit": limit,
        "scratch": scratch[0],
        "scratch-size": scratch[1],
        "memory": 1 << (size - 1).bit_length(),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "batch").write_bytes(batch)
        command = [str(binary), "--batch", str(folder / "batch"), "--result", str(folder / "out")]
        for key, value in options.items():
            command += [f"--{key}", str(value)]
        run = run_limited(command, timeout)
        if run.returncode:
            said = " ".join(run.stderr.split()) or f"exit code {run.returncode}"
            raise RoleFault(f"the role failed with seed {seed}: {said}")
        raw = (folder / "out").read_bytes()
    return _outcome(raw, len(jobs), readable)


def _outcome(raw: bytes, jobs: int, readable: list[str]) -> RoleRun:
    answers, at = [], 0
    for _ in range(jobs):
        taken, answered, status, _, length = struct.unpack_from("<5Q", raw, at)
        at += 40
        answers.append(Answer(status, raw[at : at + length], taken, answered))
        at += length
    cycles, *values = struct.unpack_from(f"<{1 + len(readable)}Q", raw, at)
    return RoleRun(answers, cycles, dict(zip(readable, values, strict=True)))
