"""Fields of a board file that the command line overrides: ``--clock``, ``--ip``, ``--set``."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..models.errors import TrebuchetError, did_you_mean
from ..models.plan import kind_and_options

__all__ = ["SETTABLE", "Overrides"]

#: Plain values that another build of the same board may have. What ``attach`` and the pins of the
#: file decide is not among them; roles and the TCP engine have options of their own.
SETTABLE = (
    "cpu_variant",
    "data_width",
    "dhcp",
    "dhcp_retry_ms",
    "dram_bytes",
    "drive",
    "frame_store",
    "ip",
    "isn_key",
    "mac",
    "peers",
    "rom_bytes",
    "router",
    "sram_bytes",
    "sys_clk_hz",
    "uart_baud",
    "udp_services",
    "watchdog_ms",
)
#: Hertz by the unit behind a number.
_UNITS = {"": 1, "hz": 1, "khz": 1_000, "mhz": 1_000_000}
#: Characters of a folder's name that say the values, at most.
_LABEL = 60


def _hertz(text):
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([a-z]*)", text.lower())
    unit = _UNITS.get(match[2]) if match else None
    hertz = None if unit is None else round(float(match[1]) * unit)
    if hertz is None or hertz < _UNITS["mhz"]:
        raise TrebuchetError(
            f"--clock must be a frequency from 1 MHz, like 60MHz or 62500000, not {text!r}"
        )
    return hertz


@dataclass(frozen=True)
class Overrides:
    """Values that take the place of those of a board's file.

    Attributes
    ----------
    values : mapping
        By name of the field, one of :data:`SETTABLE`. :class:`~.schema.Board` checks them.
    """

    values: Mapping[str, bool | int | str]

    @classmethod
    def parse(cls, clock=None, ip=None, settings=()):
        """From the texts of the options, or None if none is given.

        ``clock``: a frequency, ``ip``: an IPv4 address, ``settings``: ``FIELD=VALUE`` each. Faults
        raise :class:`TrebuchetError`.
        """
        values = {}
        for text in settings:
            must_be = "--set must be FIELD=VALUE:"
            name, equals, _ = text.partition("=")
            if not equals or "," in text:
                raise TrebuchetError(
                    f"--set must be FIELD=VALUE, such as uart_baud=9600, and again for more, "
                    f"not {text!r}"
                )
            if name not in SETTABLE:
                near = did_you_mean(name, SETTABLE)
                raise TrebuchetError(
                    f"--set {name} is not possible{near}; fields that can be set: "
                    f"{', '.join(SETTABLE)}"
                )
            if name in values:
                raise TrebuchetError(f"--set {name} is given twice; leave one of them out")
            values |= kind_and_options(f":{text}", must_be, text)[1]
        for option, name, value in (
            ("--clock", "sys_clk_hz", None if clock is None else _hertz(clock)),
            ("--ip", "ip", ip),
        ):
            if value is not None and name in values:
                raise TrebuchetError(f"{option} and --set {name} say the same; leave one out")
            values |= {} if value is None else {name: value}
        return cls(values) if values else None

    @property
    def label(self):
        """A short name for folders."""
        parts = (f"{name}_{self.values[name]}" for name in sorted(self.values))
        text = re.sub(r"[^a-z0-9]+", "_", "_".join(parts).lower())
        if len(text) <= _LABEL:
            return text
        return f"set_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
