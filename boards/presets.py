"""Sizes of the TCP engine by name: what a board file's ``tcp`` may say.

=========== ============================ =====================================================
name        FPGA                         what it is
=========== ============================ =====================================================
``lean``    ECP5 of 45,000 LUTs          64 sessions; what the engine can do without is left out
``tiny``    ECP5 of 85,000, UltraScale   64 sessions; settings, connections opened, sessions
                                         listed
``small``   UltraScale, UltraScale+      1,024 sessions, four runs each behind a gap, SACK
``compact`` ECP5 of 25,000 LUTs or more  1,024 sessions in external memory, 16 of them on chip;
                                         what the engine can do without is left out
``medium``  ECP5 of 45,000 or more       4,096 sessions in external memory, 256 of them on chip
``full``    ECP5 of 85,000, UltraScale   131,072 sessions in external memory, 1,024 of them on
                                         chip; SYN cookies, VLANs, four runs, SACK
=========== ============================ =====================================================

With sessions in external memory services have rows and slots for those at work only, as many as
there are *places* (``cores/tcp/service.py``). ``trebuchet board check`` says how much memory is
used.

``tiny``, ``small`` and ``full`` are named after the engine's own presets in
``cores/tcp/config.py``. How sessions lie in external memory: docs/tcp-store.md. No gateware is
imported here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from ..models.plan import Plan, PlanError, kind_and_options

__all__ = ["ONE_ECG", "TCP_FIELDS", "TCP_PRESETS", "TcpChoice", "TcpPreset"]

#: The plan of most boards in the tree: the ECG role, and all services.
ONE_ECG = Plan.of_roles("ecg")


@dataclass(frozen=True, kw_only=True)
class TcpPreset:
    """The fields of a :class:`~.schema.Board`, explained there, that one name stands for.

    Attributes
    ----------
    engine : str
        The preset in ``cores/tcp/config.py`` that has what no board file says. No field of a board.
    """

    engine: str = "TINY"
    sessions: int = 64
    cache: int = 0
    segments: int = 0
    places: int = 0
    segment_bytes: int = 32768
    counter_width: int = 32
    lut_ram: int = 256
    programmable: bool = True
    active: bool = True
    inspect: bool = True


TCP_PRESETS = {
    "lean": TcpPreset(
        counter_width=16,  # half the LUTs of 24 counters and of their way to the CPU
        lut_ram=1024,  # block RAM is scarcer than LUTs
        programmable=False,  # 40 registers less
        active=False,
        inspect=False,
    ),
    "tiny": TcpPreset(),
    "small": TcpPreset(engine="SMALL", sessions=1024),
    "compact": TcpPreset(
        sessions=1024,
        cache=16,
        segments=64,
        places=16,
        counter_width=16,
        programmable=False,  # so that boards without a processor can have it
        active=False,
        inspect=False,
    ),
    "medium": TcpPreset(sessions=4096, cache=256, segments=256, places=64),
    "full": TcpPreset(engine="FULL", sessions=1 << 17, cache=1024, segments=512, places=256),
}
#: The fields of a board that a preset sets where its file does not.
TCP_FIELDS = tuple(entry.name for entry in fields(TcpPreset) if entry.name != "engine")
#: Those that say how many sessions there are and where: a choice never leaves them as they were.
_STORE = ("sessions", "cache", "segments", "places")


@dataclass(frozen=True)
class TcpChoice:
    """A size of the TCP engine instead of a board's own, as ``--tcp`` says it.

    Attributes
    ----------
    preset : str
        One of :data:`TCP_PRESETS`.
    values : mapping
        Fields of a board, of :data:`TCP_FIELDS`, that differ from the preset.
    """

    preset: str
    values: Mapping[str, bool | int | str] = field(default_factory=dict)

    def __post_init__(self):
        if self.preset not in TCP_PRESETS:
            known = ", ".join(TCP_PRESETS)
            raise PlanError(f"a TCP preset must be one of {known}, not {self.preset!r}")
        for name in self.values:
            if name not in TCP_FIELDS:
                known = ", ".join(TCP_FIELDS)
                raise PlanError(
                    f"TCP preset {self.preset!r}: a field must be one of {known}, not {name!r}"
                )

    @classmethod
    def parse(cls, text):
        """From ``PRESET[:FIELD=VALUE,…]``; faults raise :class:`PlanError`."""
        return cls(*kind_and_options(text, "a TCP engine must be", text, ("PRESET", "FIELD")))

    @property
    def changes(self):
        """Changes of a board, for ``Board.variant``: what its file says beside is kept."""
        return {"tcp": self.preset, **dict.fromkeys(_STORE), **self.values}

    @property
    def label(self):
        """A short name for folders: the preset, and what differs from it."""
        parts = (f"{name}_{self.values[name]}" for name in sorted(self.values))
        return "_".join((self.preset, *parts)).lower()
