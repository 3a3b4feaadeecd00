"""Our instructions on the generated processors: what they do, beside what, and how fast."""

import os
import random
import struct

import pytest
from cpu_bench import DATA, compiled, core, run
from cpu_programs import REGISTERS, SCRATCH, interpret, random_program, source
from trebuchet.models import cpu
from trebuchet.models.net import checksum
from trebuchet.soc.cpu import CORES

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("TREBUCHET_SEED", "20"))
#: Share of cycles without an answer, and with the timer's interrupt.
WEATHER = [(0.0, 0.0), (0.4, 0.0), (0.3, 0.01)]
ILLEGAL, INTERRUPT_ON = 102, "\tli t0, 0x80\n\tcsrs mie, t0\n\tcsrsi mstatus, 8\n"
EDGES = [0, 1, 2, 0xFF, 0xFFFE, 0xFFFF, 0x1_0000, 0x1_FFFF, 0x7FFF_FFFF, 0x8000_0000]
EDGES += [0xFFFF_0000, 0xFFFE_FFFF, 0xFFFF_FFFE, 0xFFFF_FFFF, 0x8000_7FFF, 0x0102_0304]

#: Each pair of operands at s11 is followed by room for six results.
TABLE = """\
	.globl main
main:	lw s0, 0(s11)
	addi s11, s11, 4
1:	lw a0, 0(s11)
	lw a1, 4(s11)
	.insn r 0x0b, 0, 0, a2, a0, a1
	sw a2, 8(s11)
	.insn r 0x0b, 1, 0, a2, a0, x0
	sw a2, 12(s11)
	.insn r 0x0b, 2, 0, a2, a0, a1
	sw a2, 16(s11)
	.insn r 0x0b, 2, 1, a2, a0, a1
	sw a2, 20(s11)
	.insn r 0x0b, 2, 2, a2, a0, a1
	sw a2, 24(s11)
	.insn r 0x0b, 2, 3, a2, a0, a1
	sw a2, 28(s11)
	addi s11, s11, 32
	addi s0, s0, -1
	bnez s0, 1b
	li a0, 0
	ret
"""


@pytest.fixture(scope="module", params=sorted(CORES))
def ours(request):
    """Name and simulator of each of our cores."""
    return request.param, core(CORES[request.param].verilog)


@pytest.fixture(scope="module")
def stock():
    """LiteX's core without our instructions."""
    from litex import get_data_mod

    return core(f"{get_data_mod('cpu', 'vexriscv').data_location}/VexRiscv_Min.v")


def expected(a, b):
    words = (cpu.cksum_word(a, b, n) for n in range(4))
    return a, b, cpu.cksum_add(a, b), cpu.cksum_fold(a), *words


def test_every_operation_on_corner_and_random_operands(ours, tmp_path):
    rng = random.Random(SEED)
    pairs = [(a, b) for a in EDGES for b in EDGES]
    pairs += [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(1000)]
    rows = b"".join(struct.pack("<8I", a, b, *[0] * 6) for a, b in pairs)
    image = compiled(tmp_path, [TABLE], struct.pack("<I", len(pairs)) + rows)
    done = run(ours[1], image, tmp_path, SEED, stall=0.2)
    assert done.code == 0
    found = list(struct.iter_unpack("<8I", done.memory[DATA + 4 : DATA + 4 + len(rows)]))
    wrong = [(f, e) for f, (a, b) in zip(found, pairs, strict=True) if f != (e := expected(a, b))]
    assert wrong == [], f"seed {SEED}"


@pytest.mark.parametrize(("stall", "interrupts"), WEATHER)
def test_random_programs(ours, stall, interrupts, tmp_path):
    """Between all other instructions, each needing results just made, with traps in between."""
    name, binary = ours
    base = CORES[name].base
    march = {"minimal": "rv32i2p0", "lite": "rv32i2p0_m"}[base]
    for seed in range(SEED, SEED + 8):
        rng = random.Random(seed)
        program = random_program(rng, 1500, multiply=base == "lite")
        data = rng.randbytes(SCRATCH + 4 * len(REGISTERS))
        text = source(program)
        if interrupts:
            text = text.replace("main:", "main:\n" + INTERRUPT_ON, 1)
        image = compiled(tmp_path, [text], data, march)
        done = run(binary, image, tmp_path, seed, stall, interrupts)
        assert done.code == 0, f"seed {seed}"
        assert (done.interrupts > 20) == (interrupts > 0), f"seed {seed}"
        found = done.memory[DATA : DATA + len(data)]
        assert found == interpret(program, data), f"seed {seed}"


#: funct3, funct7 and second operand of what is not ours in custom-0.
OTHERS = [(f3, 0, "x0") for f3 in range(3, 8)]
OTHERS += [(0, 1, "x0"), (0, 64, "x0"), (1, 0, "a1"), (1, 1, "x0"), (2, 4, "a1"), (2, 64, "a1")]


@pytest.mark.parametrize(("funct3", "funct7", "second"), OTHERS)
def test_other_encodings_are_illegal(ours, funct3, funct7, second, tmp_path):
    text = f"\t.globl main\nmain:\t.insn r 0x0b, {funct3}, {funct7}, a0, a0, {second}\n\tret\n"
    assert run(ours[1], compiled(tmp_path, [text]), tmp_path).code == ILLEGAL


def test_the_stock_core_has_none_of_them(stock, tmp_path):
    for operands in ("0, 0, a0, a0, a1", "1, 0, a0, a0, x0", "2, 1, a0, a0, a1"):
        text = f"\t.globl main\nmain:\t.insn r 0x0b, {operands}\n\tret\n"
        assert run(stock, compiled(tmp_path, [text]), tmp_path).code == ILLEGAL


# --- checksums and copies in C -------------------------------------------------------------------

SUM_PLAIN, SUM_OURS, COPY_BYTES, COPY_PLAIN, COPY_OURS = range(1, 6)
ROOM = 0x8000  # from DATA: buffers, behind the list of cases


def work(binary, root, folder, cases, contents):
    """Results, cycles and memory of cases ``(kind, from, to, length)``."""
    rows = b"".join(struct.pack("<4I", *case) for case in cases)
    assert len(rows) + 4 <= ROOM
    data = (rows + bytes(4)).ljust(ROOM, b"\0") + contents
    image = compiled(folder, [root / "tests" / "cpu_cases.c"], data)
    done = run(binary, image, folder)
    assert done.code == 0
    stamps = [cycle for _, cycle in done.notes]
    cycles = [b - a for a, b in zip(stamps[::2], stamps[1::2], strict=True)]
    results = [struct.unpack_from("<I", done.memory, DATA + 16 * k)[0] for k in range(len(cases))]
    return results, cycles, done.memory


def test_checksums_of_every_length(ours, root, tmp_path):
    rng = random.Random(SEED)
    contents = rng.randbytes(2048)
    lengths = [*range(1, 70), 1499, 1500]
    base = DATA + ROOM
    cases = [(kind, base, 0, n) for n in lengths for kind in (SUM_PLAIN, SUM_OURS)]
    results, _, _ = work(ours[1], root, tmp_path, cases, contents)
    for case, sum_ in zip(cases, results, strict=True):
        swapped = (sum_ & 0xFF) << 8 | sum_ >> 8  # in the byte order of the machine
        assert swapped ^ 0xFFFF == checksum(contents[: case[3]]), f"seed {SEED}: {case}"


def test_copies_between_all_alignments(ours, root, tmp_path):
    rng = random.Random(SEED)
    contents = rng.randbytes(256)
    source_, target = DATA + ROOM, DATA + ROOM + 0x1000
    shapes = [(i, j, n) for i in range(4) for j in range(4) for n in (*range(9), 61)]
    cases = [
        (COPY_OURS, source_ + 16 + i, target + 128 * k + 16 + j, n)
        for k, (i, j, n) in enumerate(shapes)
    ]
    _, _, memory = work(ours[1], root, tmp_path, cases, contents)
    for k, (i, j, n) in enumerate(shapes):
        room = bytearray(128)
        room[16 + j : 16 + j + n] = contents[16 + i : 16 + i + n]
        at = target + 128 * k
        assert memory[at : at + 128] == room, f"seed {SEED}: {shapes[k]}"


def test_they_make_checksum_and_copy_faster(ours, root, tmp_path):
    """1,500 bytes on a memory that answers at once; the copy is to another alignment."""
    source_, target = DATA + ROOM, DATA + ROOM + 0x1000
    cases = [(kind, source_, 0, 1500) for kind in (SUM_PLAIN, SUM_OURS)]
    cases += [(kind, source_ + 1, target, 1500) for kind in (COPY_BYTES, COPY_PLAIN, COPY_OURS)]
    _, cycles, _ = work(ours[1], root, tmp_path, cases, bytes(2048))
    sum_plain, sum_ours, by_bytes, by_shifts, copy_ours = cycles
    print(f"{ours[0]}: {cycles}")  # docs/cpu.md
    assert sum_ours < sum_plain / 1.2
    assert copy_ours < min(by_bytes, by_shifts) / 3
