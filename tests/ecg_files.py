"""Write WFDB records as other sources do: any format, unit, rate, names, segments."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from trebuchet.models.ecg import data
from trebuchet.models.errors import TrebuchetError

#: How the writer stores counts; the reader has its own table.
TYPES = {"16": "<i2", "61": ">i2", "32": "<i4"}


@dataclass(frozen=True)
class Lead:
    """A signal of a record: its name, millivolts (NaN: invalid), and how it is stored."""

    name: str
    values: np.ndarray
    gain: float = 200
    baseline: int = 0
    unit: str = "mV"
    form: str = "16"
    #: The third word of the signal line; None: from gain, baseline and unit.
    gain_text: str | None = None

    def counts(self) -> np.ndarray:
        invalid = np.isnan(self.values)
        lowest = np.iinfo(TYPES[self.form]).min
        scaled = np.rint(np.where(invalid, 0, self.values) * self.gain + self.baseline)
        return np.where(invalid, lowest, scaled).astype(TYPES[self.form])

    def line(self, file: str) -> str:
        text = self.gain_text
        text = f"{self.gain:g}({self.baseline})/{self.unit}" if text is None else text
        total = int(self.counts().sum(dtype=np.int64)) % 65536
        first = int(self.counts()[0]) if len(self.values) else 0
        return f"{file} {self.form} {text} 16 0 {first} {total} 0 {self.name}".rstrip()


def write(folder: Path, name: str, *leads: Lead, rate: float = 360, file: str = "") -> Path:
    """Write a record of one segment, without annotations; return its header."""
    file = file or f"{name}.dat"
    columns = [lead.counts() for lead in leads]
    (folder / file).write_bytes(np.stack(columns, 1).tobytes())
    lines = [f"{name} {len(leads)} {rate:g} {len(columns[0])}"]
    header = folder / f"{name}.hea"
    header.write_text("\n".join([*lines, *(lead.line(file) for lead in leads)]) + "\n", "utf-8")
    return header


def write_segments(folder: Path, name: str, *segments: tuple[str, int], rate: float = 360) -> Path:
    """Write the header of a record of segments, each a name and a length; ``~`` is a gap."""
    total = sum(length for _, length in segments)
    lines = [f"{name}/{len(segments)} 1 {rate:g} {total}", *(f"{n} {k}" for n, k in segments)]
    header = folder / f"{name}.hea"
    header.write_text("\n".join(lines) + "\n")
    return header


def annotate(folder: Path, name: str, places, code: int = 1) -> None:
    """Write annotations of one code, less than 1,024 samples apart."""
    words = [code << 10 | gap for gap in np.diff([0, *places])] + [0]
    (folder / f"{name}.atr").write_bytes(np.array(words, "<u2").tobytes())


def refusal(name="x", **options):
    """The line with which loading a record is refused."""
    with pytest.raises(TrebuchetError) as caught:
        data.load(name, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message
