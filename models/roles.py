"""Golden models of the small roles: loopback, benchmark, the Verilog example."""

import zlib

from .status import Status

__all__ = ["BENCHMARK_SEEDS", "adler", "benchmark", "benchmark_noise", "loopback"]

#: Where the generators of the benchmark role begin.
BENCHMARK_SEEDS = (0x9E3779B9, 0x7F4A7C15, 0xF39CC060, 0x5CEDC834)
_HEAD = 16


def loopback(operand: bytes, room: int) -> tuple[Status, bytes]:
    """Status and result of ``cores/roles/loopback``."""
    if len(operand) > room:
        return Status.NO_ROOM, b""
    return Status.OK, operand


def adler(operand: bytes, room: int) -> tuple[Status, bytes]:
    """Status and result of ``cores/roles/verilog_example``."""
    if room < 4:
        return Status.NO_ROOM, b""
    return Status.OK, zlib.adler32(operand).to_bytes(4, "little")


def benchmark_noise(count: int) -> bytes:
    """The first ``count`` bytes that the benchmark role makes up: four xorshift32 in turn.

    Marsaglia, Xorshift RNGs, Journal of Statistical Software 8(14), 2003.
    """
    states = list(BENCHMARK_SEEDS)
    out = bytearray()
    while len(out) < count:
        for i, x in enumerate(states):
            out += x.to_bytes(4, "little")
            x ^= x << 13 & 0xFFFFFFFF
            x ^= x >> 17
            states[i] = x ^ (x << 5 & 0xFFFFFFFF)
    return bytes(out[:count])


def benchmark(operand: bytes, room: int, output_length: int = 0) -> tuple[Status, bytes]:
    """Status and result of ``cores/roles/benchmark``."""
    length = max(output_length, _HEAD) if output_length else len(operand)
    if len(operand) < _HEAD:
        return Status.BAD_LENGTH, b""
    if length > room:
        return Status.NO_ROOM, b""
    return Status.OK, operand[:_HEAD] + benchmark_noise(length - _HEAD)
