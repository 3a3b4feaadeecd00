"""The figures of `docs/ecg.md`: what each step of the algorithm makes of a stretch of a record."""

from pathlib import Path

import numpy as np

from ...models.ecg import data, model, second
from ...models.ecg.conversion import COUNTS_PER_MV
from ...models.ecg.data import RATE
from ...models.errors import TrebuchetError
from ...models.files import make_folder
from ..pictures import save_picture
from .plot import COLOURS

__all__ = ["draw_figures"]

#: A record with normal beats and PVCs, and where to look at it.
RECORD, SECONDS, SHOWN = "119", 50, 8
#: A record of each class, for the inputs of the second preset.
EXAMPLES = (("100", 0), ("109", 1), ("118", 2), ("232", 3), ("119", 4), ("107", 5))


def draw_figures(folder: Path) -> list[Path]:
    """Write all figures as PNG; they show real records, so these must be here."""
    names = data.list_records(data.find_folder())
    missing = sorted({RECORD, *(name for name, _ in EXAMPLES)} - set(names))
    if missing:
        raise TrebuchetError(
            f"the figures show records {' '.join(missing)}, which are not here; get them with "
            "`trebuchet ecg fetch`"
        )
    import matplotlib  # noqa: PLC0415 - slow to import, and only pictures need it

    matplotlib.use("Agg")
    make_folder(folder)
    paths = [folder / f"{name}.png" for name in ("detection", "subbands", "traces")]
    draw_detection(paths[0])
    draw_subbands(paths[1])
    draw_traces(paths[2])
    return paths


def save(figure, path: Path) -> None:
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of backend

    # Without date and version the same picture is the same file.
    save_picture(figure, path, dpi=70, metadata={"Software": None})
    plt.close(figure)


def block_shown() -> np.ndarray:
    start = SECONDS * RATE // 4 * 4
    return data.load(RECORD).samples[start : start + model.MAX_SAMPLES]


def draw_detection(path: Path) -> None:
    """Samples, D2, scores with their thresholds, accepted beats."""
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of backend

    samples = block_shown()
    d2 = model.block_d2(samples)
    crossings, score = model.scores(d2)
    level = model.signal_level(crossings, score, len(d2))
    peaks = [place for place, _ in model.r_peaks(samples)]
    figure, panels = plt.subplots(3, 1, figsize=(11, 6), sharex=True, layout="constrained")
    time, slow = np.arange(len(samples)) / RATE, 4 * np.arange(len(d2)) / RATE
    panels[0].plot(time, samples / COUNTS_PER_MV, color="black", linewidth=0.8)
    for place in peaks:
        panels[0].axvline(place / RATE, color=COLOURS[4], linewidth=0.8)
    panels[0].set_ylabel("samples, mV")
    panels[1].plot(slow, d2, color=COLOURS[0], linewidth=0.8)
    panels[1].axhline(0, color="grey", linewidth=0.5)
    panels[1].set_ylabel("D2")
    panels[2].vlines(4 * crossings / RATE, 0, score, color=COLOURS[1], linewidth=1)
    panels[2].axhline(model.THRESHOLD * level / 16, color=COLOURS[4], linewidth=0.8)
    panels[2].set_ylabel("score of crossings")
    panels[2].set_xlabel(f"seconds of a block (record {RECORD}); lines: beats, threshold")
    panels[2].set_xlim(0, SHOWN)
    save(figure, path)


def draw_subbands(path: Path) -> None:
    """QRS window and subbands of a normal beat and a PVC: what the 11 features are made of."""
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of backend

    figure, panels = plt.subplots(1, 4, figsize=(11, 2.8), layout="constrained")
    for label in (0, 4):
        windows = example_windows(RECORD, label, 12)
        d1, d2, a2 = model.subbands(windows)
        for panel, band, name in zip(
            panels, (windows, d1, d2, a2), ("window", "D1", "D2", "A2"), strict=True
        ):
            name_of_class = model.CLASSES[label] if name == "window" else None
            panel.plot(band.mean(axis=0), color=COLOURS[label], label=name_of_class)
            panel.set_title(name, fontsize=9)
    panels[0].legend(fontsize=8)
    save(figure, path)


def beats_of(name: str, label: int) -> tuple[np.ndarray, np.ndarray]:
    """``(samples, positions of the beats of a class)``, on the grid of D2."""
    record = data.load(name)
    assert record.positions is not None
    assert record.labels is not None
    inside = (record.positions > RATE) & (record.positions < len(record.samples) - RATE)
    return record.samples, record.positions[(record.labels == label) & inside]


def example_windows(name: str, label: int, count: int) -> np.ndarray:
    samples, places = beats_of(name, label)
    return np.stack([model.window(samples, place) for place in places[:count]])


def draw_traces(path: Path) -> None:
    """The second preset's trace of some beats of each class."""
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of backend

    figure, panels = plt.subplots(1, 6, figsize=(13, 2.6), layout="constrained", sharey=True)
    time = (np.arange(second.TRACE) - second.BEFORE) * 4000 / RATE
    for panel, (name, label) in zip(panels, EXAMPLES, strict=True):
        samples, places = beats_of(name, label)
        a2 = second.block_a2(samples.astype(np.int64))
        traces = second.trace(a2, places[:40] // 4)
        panel.plot(time, traces.T / COUNTS_PER_MV, color=COLOURS[label], linewidth=0.4, alpha=0.6)
        panel.axvline(0, color="grey", linewidth=0.5)
        panel.set_title(f"{model.CLASSES[label]} (record {name})", fontsize=9)
        panel.set_xlabel("ms", fontsize=8)
    panels[0].set_ylabel("A2, mV")
    save(figure, path)
