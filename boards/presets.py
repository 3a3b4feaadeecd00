"""Sizes of the TCP engine by name: what a board file's ``tcp`` may say.

======== ============================ ========================================================
name     FPGA                         what it is
======== ============================ ========================================================
``lean`` ECP5 of 45,000 LUTs          64 sessions; what the engine can do without is left out
``tiny`` ECP5 of 85,000, UltraScale   64 sessions; settings, connections opened, sessions listed
``small`` UltraScale, UltraScale+     1,024 sessions, four runs each behind a gap, SACK
======== ============================ ========================================================

``tiny`` and ``small`` are named after the engine's own presets in ``cores/tcp/config.py``. There is
a third one of those, with sessions in external memory, but not here: the shell sets no memory apart
for them. No gateware is imported here.
"""

from dataclasses import dataclass, fields

from ..models.plan import Plan

__all__ = ["ONE_ECG", "TCP_FIELDS", "TCP_PRESETS", "TcpPreset"]

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
}
#: The fields of a board that a preset sets where its file does not.
TCP_FIELDS = tuple(field.name for field in fields(TcpPreset) if field.name != "engine")
