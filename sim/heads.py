"""The head parser in Verilator: heads in, what it reports of each out.

::

    binary = build(head_source(HeadParser()))
    reports = parse_heads(binary, [(b"GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n", End.HEAD)])
"""

import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..cores.web.finder import End
from ..models.errors import TrebuchetError
from .build import Source
from .flat import FlatTop
from .process import run_limited

__all__ = ["HeadFault", "HeadReport", "head_source", "parse_heads"]

TOP = "trebuchet_heads"
HARNESS = Path(__file__).resolve().parent / "head_harness"
_RECORD = struct.Struct("<8BIQIII")


class HeadFault(TrebuchetError):
    """The parser gave a verdict too early, withdrew it, or stopped."""


class HeadReport(NamedTuple):
    """What the parser reports of a head: ``request_layout``, cycles, and the path's bytes."""

    verdict: int
    head: int
    close: int
    http10: int
    any_tag: int
    tagged: int
    path_offset: int
    path_length: int
    path_crc: int
    tag: int
    length: int
    #: From the first byte to the verdict.
    cycles: int
    path: bytes


class _HeadTop(FlatTop):
    def __init__(self, dut):
        super().__init__(dut)
        self.stream("i", dut.i, ("data", "end"), False)
        self.stream("o", dut.o, [name for name, _ in dut.layout], True)
        for name in ("path", "new_path", "path_byte"):
            self.port(name, getattr(dut, name), True)


def head_source(dut) -> Source:
    """The :class:`~trebuchet.sim.build.Source` of a ``HeadParser``."""
    texts = {"top.v": _HeadTop(dut).verilog(TOP)}
    return Source("heads", TOP, texts, main=HARNESS / "heads.cpp")


def parse_heads(
    binary: Path,
    heads: Sequence[tuple[bytes, End]],
    *,
    seed: int = 1,
    stall: float = 0.0,
    timeout: float = 600,
) -> list[HeadReport | None]:
    """Run heads through the simulator that ``build(head_source(…))`` made, in one go.

    Parameters
    ----------
    heads : sequence of (bytes, End)
        Bytes of each, at least one, and what follows the last one.
    stall : float
        Chance of a pause before each byte and each verdict, in a cycle.
    timeout : float
        Seconds of processor time.

    Returns
    -------
    list
        A report a head; None for one that is ``CUT``. Raises :class:`HeadFault`, with the head's
        number and the seed.
    """
    with tempfile.TemporaryDirectory() as name:
        source, result = Path(name) / "heads", Path(name) / "reports"
        with source.open("wb") as file:
            for data, end in heads:
                file.write(struct.pack("<II", len(data), end.value) + data)
        run = run_limited([binary, source, result, seed, stall], timeout)
        if run.returncode:
            said = " ".join(run.stderr.split()) or f"exit code {run.returncode}"
            raise HeadFault(f"the parser failed with seed {seed}: {said}")
        raw = result.read_bytes()
    reports: list[HeadReport | None] = []
    at = 0
    for _, end in heads:
        if end is End.CUT:
            reports.append(None)
            continue
        *fields, size = _RECORD.unpack_from(raw, at)
        at += _RECORD.size + size
        reports.append(HeadReport(*fields, raw[at - size : at]))  # type: ignore[call-arg]
    return reports
