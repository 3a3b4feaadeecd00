"""The presets by name."""

from ..errors import TrebuchetError
from .model import FAITHFUL, Preset
from .second import SECOND

__all__ = ["PRESETS", "preset_named"]

PRESETS = {preset.name: preset for preset in (FAITHFUL, SECOND)}


def preset_named(name: str) -> Preset:
    if name not in PRESETS:
        raise TrebuchetError(f"the preset must be one of {', '.join(PRESETS)}, not {name!r}")
    return PRESETS[name]
