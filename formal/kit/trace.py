"""Traces of failed proofs: a table of the cycles that people can read, and an FST for a viewer."""

import re
from dataclasses import dataclass
from pathlib import Path

from vcd.reader import TokenKind, tokenize

from .statements import Place, parse, text_of

__all__ = ["Trace", "broken", "explain", "write_fst"]

#: Cycles and signals that a table shows.
CYCLES = 10
SIGNALS = 48

_BROKEN = re.compile(r"(?:Assert failed in|Unreached cover statement at) \S+: (\S+:\d+\S*)")


@dataclass(frozen=True)
class Trace:
    """Values of signals in each cycle: ``values[path][cycle]`` in bits, "" where there is none.

    ``path`` is the names of scopes and the signal's, the harness's scope being ``top``.
    """

    widths: dict[tuple[str, ...], int]
    values: dict[tuple[str, ...], list[str]]

    @classmethod
    def read(cls, path: Path) -> "Trace":
        """From a VCD of yosys-smtbmc, which counts its steps in a variable ``smt_step``."""
        scope: list[str] = []
        paths: dict[str, list[tuple[str, ...]]] = {}
        widths: dict[tuple[str, ...], int] = {}
        values: dict[tuple[str, ...], list[str]] = {}
        now: dict[str, str] = {}
        step = None

        def sample():
            for code, names in paths.items():
                for name in names:
                    values[name].append(now.get(code, ""))

        with path.open("rb") as file:
            for token in tokenize(file):
                if token.kind is TokenKind.SCOPE:
                    scope.append(token.scope.ident)
                elif token.kind is TokenKind.UPSCOPE:
                    scope.pop()
                elif token.kind is TokenKind.VAR:
                    var = token.var
                    if var.reference == "smt_step":
                        step = var.id_code
                    elif var.reference != "smt_clock":
                        name = (*scope, var.reference)
                        paths.setdefault(var.id_code, []).append(name)
                        widths[name], values[name] = var.size, []
                elif token.kind in (TokenKind.CHANGE_SCALAR, TokenKind.CHANGE_VECTOR):
                    change = token.data
                    if change.id_code == step:
                        if now:
                            sample()
                    elif change.id_code in paths:
                        now[change.id_code] = _bits(change.value)
        # A last step, which is not sampled, only marks the end.
        return cls(widths, values)

    def table(self, wanted: set[str]) -> str:
        """The last cycles as text: signals in ``wanted`` first, then the harness's, the core's.

        Left out are what never was but 0, and what the tools have named. A dot: as before.
        """
        shown = [path for path in self.values if self._matters(path, wanted)]
        shown.sort(key=lambda path: (path[-1] not in wanted, len(path)))
        # A port has its name and values on both sides of its module: once is enough.
        once = {(path[-1], tuple(self.values[path])): path for path in reversed(shown)}
        shown = [path for path in shown if path in set(once.values())]
        cycles = len(next(iter(self.values.values()), []))
        first = max(0, cycles - CYCLES)
        rows = [["", *(str(cycle) for cycle in range(first, cycles))]]
        for path in shown[:SIGNALS]:
            bits = self.values[path][first:]
            cells = [
                "." if k and bits[k] == bits[k - 1] else _hex(b, self.widths[path])
                for k, b in enumerate(bits)
            ]
            rows.append([".".join(path[1:]), *cells])
        if len(shown) > SIGNALS:
            rows.append([f"and {len(shown) - SIGNALS} more"])
        return _aligned(rows)

    def _matters(self, path: tuple[str, ...], wanted: set[str]) -> bool:
        if any(part.startswith(("$", "/", "_witness_")) or part == "clk" for part in path):
            return False
        return path[-1] in wanted or any(set(value) - {"0"} for value in self.values[path])


def _bits(value) -> str:
    return format(value, "b") if isinstance(value, int) else str(value)


def _hex(bits: str, width: int) -> str:
    return bits if not set(bits) <= {"0", "1"} or not bits else format(int(bits, 2), "x")


def _aligned(rows: list[list[str]]) -> str:
    columns = max(len(row) for row in rows)
    rows = [row + [""] * (columns - len(row)) for row in rows]
    widths = [max(len(row[c]) for row in rows) for c in range(columns)]
    lines = []
    for name, *values in rows:
        cells = [value.rjust(width) for value, width in zip(values, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def broken(log: str) -> list[list[Place]]:
    """Each statement that does not hold by SymbiYosys' log, once: its place, then its callers'."""
    found = [parse(text) for text in dict.fromkeys(_BROKEN.findall(log))]
    return [places for places in found if places]


def explain(folder: Path) -> str:
    """What failed in a run below ``folder`` and the cycles that lead there, as text.

    Also writes it to ``trace.txt`` there, and the trace as ``trace.fst``.
    """
    lines, words = [], set()
    for place, *callers in broken((folder / "log.txt").read_text()):
        text = text_of(place)
        lines.append(f"{place}: {text}")
        lines += [f"  from {caller}: {text_of(caller)}" for caller in callers]
        for name in (text, *place.names, *(n for caller in callers for n in caller.names)):
            words |= set(re.findall(r"[A-Za-z_]\w*", name))
    traces = sorted((folder / "out").glob("engine_0/trace*.vcd"))
    if traces:
        trace = Trace.read(traces[0])
        write_fst(trace, folder / "trace.fst")
        if traces[0].stem.endswith("induct"):
            lines.append(
                "The induction's step does not hold; it may begin in a state out of reach:"
            )
        lines += [trace.table(words), f"All of it: {folder / 'trace.fst'}"]
    text = "\n".join(lines) + "\n"
    (folder / "trace.txt").write_text(text)
    return text


def write_fst(trace: Trace, path: Path) -> None:
    """Write a trace for a waveform viewer; a cycle takes 10 ns."""
    from pylibfst import ffi, lib

    writer = lib.fstWriterCreate(str(path).encode(), 1)
    if writer == ffi.NULL:
        raise OSError(f"{path} cannot be written")
    lib.fstWriterSetTimescaleFromString(writer, b"1ns")
    handles = {}
    scope: tuple[str, ...] = ()
    for name in sorted(trace.values):
        scope = _enter(lib, writer, scope, name[:-1])
        handles[name] = lib.fstWriterCreateVar(
            writer, lib.FST_VT_VCD_WIRE, lib.FST_VD_IMPLICIT, trace.widths[name],
            name[-1].encode(), 0,
        )  # fmt: skip
    cycles = len(next(iter(trace.values.values()), []))
    for cycle in range(cycles):
        lib.fstWriterEmitTimeChange(writer, 10 * cycle)
        for name, handle in handles.items():
            bits = trace.values[name][cycle]
            if bits and (cycle == 0 or bits != trace.values[name][cycle - 1]):
                padded = bits.rjust(trace.widths[name], "0")
                lib.fstWriterEmitValueChange(writer, handle, padded.encode())
    lib.fstWriterEmitTimeChange(writer, 10 * cycles)
    lib.fstWriterClose(writer)


def _enter(lib, writer, here: tuple[str, ...], there: tuple[str, ...]) -> tuple[str, ...]:
    """Close and open scopes until ``there`` is open."""
    common = 0
    while common < min(len(here), len(there)) and here[common] == there[common]:
        common += 1
    for _ in here[common:]:
        lib.fstWriterSetUpscope(writer)
    for name in there[common:]:
        lib.fstWriterSetScope(writer, lib.FST_ST_VCD_MODULE, name.encode(), b"")
    return there
