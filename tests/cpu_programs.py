"""Random programs for a processor, and a naive interpreter that knows what they do."""

import struct

from trebuchet.models import cpu

__all__ = ["REGISTERS", "SCRATCH", "interpret", "random_program", "source"]

M = 0xFFFF_FFFF
#: What programs use: neither x1, x2, x5 nor x27, which the frame around them needs.
REGISTERS = [n for n in range(6, 32) if n != 27]
#: Bytes that programs read and write, from the address in x27 on.
SCRATCH = 64


def signed(value):
    return value - (1 << 32) if value >> 31 else value


def _divide(a, b):
    quotient = abs(a) // abs(b) if b else 0
    return quotient if (a < 0) == (b < 0) else -quotient


def _div(a, b):
    return -1 if b == 0 else _divide(signed(a), signed(b))


def _rem(a, b):
    return a if b == 0 else signed(a) - signed(b) * _divide(signed(a), signed(b))


#: Three-register instructions, and what they do to unsigned numbers.
BASE = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "xor": lambda a, b: a ^ b,
    "or": lambda a, b: a | b,
    "and": lambda a, b: a & b,
    "slt": lambda a, b: int(signed(a) < signed(b)),
    "sltu": lambda a, b: int(a < b),
    "sll": lambda a, b: a << (b & 31),
    "srl": lambda a, b: a >> (b & 31),
    "sra": lambda a, b: signed(a) >> (b & 31),
}
MULTIPLY = {
    "mul": lambda a, b: a * b,
    "mulh": lambda a, b: signed(a) * signed(b) >> 32,
    "mulhu": lambda a, b: a * b >> 32,
    "mulhsu": lambda a, b: signed(a) * b >> 32,
    "div": _div,
    "divu": lambda a, b: M if b == 0 else a // b,
    "rem": _rem,
    "remu": lambda a, b: a if b == 0 else a % b,
}
CKSUM = {
    ".insn r 0x0b, 0, 0,": cpu.cksum_add,
    ".insn r 0x0b, 1, 0,": lambda a, _: cpu.cksum_fold(a),
    **{f".insn r 0x0b, 2, {n},": lambda a, b, n=n: cpu.cksum_word(a, b, n) for n in range(4)},
}
BRANCHES = {
    "beq": lambda a, b: a == b,
    "bne": lambda a, b: a != b,
    "blt": lambda a, b: signed(a) < signed(b),
    "bgeu": lambda a, b: a >= b,
}
LOADS = {"lw": "<I", "lh": "<h", "lhu": "<H", "lb": "<b", "lbu": "<B"}
STORES = {"sw": 4, "sh": 2, "sb": 1}


def random_program(rng, length, multiply):
    """``length`` instructions as tuples, our own being as frequent as all others.

    Registers are few at a time, so that most instructions need the result of one just before.
    """
    names = [*BASE, *(MULTIPLY if multiply else ())]
    program = []
    while len(program) < length:
        few = rng.sample(REGISTERS, 4)
        for _ in range(rng.randrange(4, 40)):
            d, a, b = (rng.choice([*few, 0]) for _ in range(3))
            kind = rng.randrange(10)
            if kind < 5:
                name = rng.choice(list(CKSUM))
                program.append((name, d, a, 0 if " 1, 0," in name else b))
            elif kind < 7:
                program.append((rng.choice(names), d, a, b))
            elif kind == 7:
                size = struct.calcsize(LOADS[name := rng.choice(list(LOADS))])
                program.append((name, d, size * rng.randrange(SCRATCH // size)))
            elif kind == 8:
                size = STORES[name := rng.choice(list(STORES))]
                program.append((name, a, size * rng.randrange(SCRATCH // size)))
            else:
                program.append((rng.choice(list(BRANCHES)), a, b, rng.randrange(1, 4)))
    return program


def source(program):
    """The program as a function ``main`` in assembly language.

    It takes its registers from memory behind the scratch area and leaves them there.
    """
    lines = ["\t.globl main", "main:"]
    lines += [f"\tlw x{n}, {SCRATCH + 4 * k}(x27)" for k, n in enumerate(REGISTERS)]
    for k, (name, *operands) in enumerate(program):
        if name in BRANCHES:
            a, b, distance = operands
            text = f"{name} x{a}, x{b}, .L{min(k + 1 + distance, len(program))}"
        elif name in LOADS or name in STORES:
            text = f"{name} x{operands[0]}, {operands[1]}(x27)"
        else:
            text = f"{name} " + ", ".join(f"x{n}" for n in operands)
        lines.append(f".L{k}:\t{text}")
    lines.append(f".L{len(program)}:")
    lines += [f"\tsw x{n}, {SCRATCH + 4 * k}(x27)" for k, n in enumerate(REGISTERS)]
    return "\n".join([*lines, "\tli a0, 0", "\tret", ""])


def interpret(program, data):
    """What the program leaves of ``data``: scratch area and registers."""
    memory = bytearray(data[:SCRATCH])
    values = struct.unpack_from(f"<{len(REGISTERS)}I", data, SCRATCH)
    x = dict.fromkeys(range(32), 0) | dict(zip(REGISTERS, values, strict=True))
    operations = BASE | MULTIPLY | CKSUM
    k = 0
    while k < len(program):
        name, *operands = program[k]
        k += 1
        if name in BRANCHES:
            a, b, distance = operands
            k += distance if BRANCHES[name](x[a], x[b]) else 0
        elif name in LOADS:
            x[operands[0]] = struct.unpack_from(LOADS[name], memory, operands[1])[0] & M
        elif name in STORES:
            at, size = operands[1], STORES[name]
            memory[at : at + size] = x[operands[0]].to_bytes(4, "little")[:size]
        else:
            d, a, b = operands
            x[d] = operations[name](x[a], x[b]) & M
        x[0] = 0
    return bytes(memory) + struct.pack(f"<{len(REGISTERS)}I", *(x[n] for n in REGISTERS))
