"""A processor core alone in Verilator, on a memory that answers when it likes."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from trebuchet.sim.build import Source, build

__all__ = ["DATA", "Run", "compiled", "core", "run"]

HERE = Path(__file__).parent
FIRMWARE = HERE.parent / "firmware"
#: Where a program finds its input and leaves its results; code is below.
DATA = 0x1_0000
LIMIT = 4_000_000
_TOOL = "riscv64-unknown-elf-"

#: Programs begin here: registers as they must be for C. Exceptions end the run, interrupts are
#: counted; they change t0.
START = f"""\
	.section .start, "ax"
	.globl _start
_start:	li sp, 0xff000
	la t0, handler
	csrw mtvec, t0
	li s11, {DATA:#x}
	li tp, 0
	call main
	li t0, 0x80000000
	sw tp, 4(t0)
	sw a0, 0(t0)
1:	j 1b
	.align 2
handler: csrr t0, mcause
	bltz t0, 2f
	addi a0, t0, 100
	li t0, 0x80000000
	sw tp, 4(t0)
	sw a0, 0(t0)
2:	addi tp, tp, 1
	mret
"""


@dataclass(frozen=True)
class Run:
    """How a program went.

    Attributes
    ----------
    code : int
        What ``main`` returned; 100 and the cause for an exception.
    cycles : int
        From reset to the end.
    memory : bytes
        The memory afterwards.
    interrupts : int
        How many were taken.
    notes : list of (int, int)
        What the program has stored to the harness, each with its cycle.
    """

    code: int
    cycles: int
    memory: bytes
    interrupts: int
    notes: list


def core(verilog):
    """The simulator of the core in the file ``verilog``."""
    harness = HERE / "cpu_harness" / "cpu.cpp"
    return build(Source("cpu", "VexRiscv", {}, (Path(verilog),), main=harness))


def compiled(folder, sources, data=b"", march="rv32i2p0"):
    """The image of a program with a function ``main``, and ``data`` at :data:`DATA`.

    Parameters
    ----------
    sources : list of path or str
        Files, or text in assembly language.
    """
    start = folder / "start.S"
    start.write_text(START)
    files = [start]
    for k, source in enumerate(sources):
        if isinstance(source, str):
            path = folder / f"source{k}.S"
            path.write_text(source)
            source = path
        files.append(source)
    elf, image = folder / "program.elf", folder / "program.bin"
    command = [_TOOL + "gcc", f"-march={march}", "-mabi=ilp32", "-O2", "-nostdlib", "-Wall"]
    command += ["-Wextra", "-Werror", "-ffreestanding", "-mstrict-align", f"-I{FIRMWARE}"]
    # A loop that copies stays one, instead of a call of memcpy.
    command += ["-fno-tree-loop-distribute-patterns", "-Wl,--section-start=.start=0"]
    command += ["-Wl,-Ttext=0x100", "-Wl,--no-relax", "-Wl,-e,_start", *files, "-o", elf]
    subprocess.run(command, check=True)
    subprocess.run([_TOOL + "objcopy", "-O", "binary", elf, image], check=True)
    code = image.read_bytes()
    assert len(code) <= DATA
    return code.ljust(DATA, b"\0") + data


def run(binary, image, folder, seed=1, stall=0.0, interrupts=0.0):
    """Run a program to its end.

    Parameters
    ----------
    stall : float
        Share of the cycles in which a bus does not answer.
    interrupts : float
        Share of the cycles in which the timer's interrupt begins.
    """
    there, back = folder / "image", folder / "result"
    there.write_bytes(image)
    options = {"image": there, "result": back, "limit": LIMIT}
    options |= {"seed": seed, "stall": stall, "interrupts": interrupts}
    command = [binary, *(part for k, v in options.items() for part in (f"--{k}", str(v)))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    where = f"seed {seed}, stall {stall}, interrupts {interrupts}"
    assert done.returncode == 0, f"{where}: {done.stderr}"
    *notes, end = (line.split() for line in done.stdout.splitlines())
    pairs = [(int(value), int(cycle)) for value, cycle in notes]
    interrupted, _ = pairs.pop()
    return Run(int(end[1]), int(end[2]), back.read_bytes(), interrupted, pairs)
