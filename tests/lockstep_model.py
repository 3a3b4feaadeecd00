"""A Verilated top that Python drives in lock step: inputs of a cycle in, outputs of it out."""

import subprocess
from pathlib import Path

from trebuchet.sim.build import Source, build

__all__ = ["Lockstep", "packet_into", "packets_from"]

_MAIN = Path(__file__).resolve().parent / "lockstep" / "main.cpp"


class Lockstep:
    """The module ``top`` of Verilog files, compiled once for each content, and running.

    Parameters
    ----------
    kind : str
        Names the build.
    files : sequence of path
        Verilog; further files of their folders are found by ``$readmemh``.
    inputs, outputs : sequence of str
        Ports of at most 64 bits.
    clock, reset : str
        Ports; ``reset`` may be empty.
    folder : path
        Where it runs.
    """

    def __init__(self, kind, top, files, inputs, outputs, *, folder, clock="clk", reset="rst"):
        self.inputs, self.outputs = list(inputs), list(outputs)
        put = " ".join(f"top.{name} = v[{k}];" for k, name in enumerate(self.inputs, 1))
        form = " ".join('%" PRIx64 "' for _ in self.outputs)
        values = ", ".join(f"uint64_t(top.{name})" for name in self.outputs)
        lines = [
            f"#define PORTS_IN {len(self.inputs)}",
            f"#define CLOCK {clock}",
            f"#define SET_RESET(x) {f'top.{reset} = x' if reset else ''}",
            f"#define PUT(v) do {{ {put} }} while (0)",
            f'#define SHOW printf("{form}\\n", {values})',
        ]
        texts = {Path(file).name: Path(file).read_text() for file in files}
        texts["ports.h"] = "\n".join(lines) + "\n"
        binary = build(Source(kind, top, texts, main=_MAIN))
        self.cycles = 0
        self.process = subprocess.Popen(
            [binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def step(self, **inputs):
        """Outputs by name in one cycle with these inputs; all others are 0."""
        assert inputs.keys() <= set(self.inputs), inputs
        words = (f"{int(inputs.get(name, 0)):x}" for name in self.inputs)
        self.process.stdin.write(" ".join(("0", *words)) + "\n")
        self.process.stdin.flush()
        self.cycles += 1
        words = self.process.stdout.readline().split()
        return dict(zip(self.outputs, (int(word, 16) for word in words), strict=True))


def packet_into(data, width=32):
    """The beats of a packet: data, bytes of it, first, last."""
    n = width // 8
    for at in range(0, len(data), n):
        chunk = data[at : at + n]
        last = at + n >= len(data)
        yield int.from_bytes(chunk, "little"), len(chunk), at == 0, last


def packets_from(beats, width=32):
    """Whole packets from ``(data, bytes, last)`` of beats that moved."""
    packets, current = [], b""
    for data, size, last in beats:
        current += data.to_bytes(width // 8, "little")[:size]
        if last:
            packets.append(current)
            current = b""
    return packets
