"""The cores that can be generated, and their parameters."""

import dataclasses
import ipaddress
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..cores.ltl.config import LtlConfig
from ..cores.roles.ecg.role import EcgConfig
from ..cores.roles.matmul.role import MatmulConfig
from ..cores.stream import DATA_WIDTHS
from ..cores.tcp import config as tcp
from ..models.errors import TrebuchetError, did_you_mean
from .components import (
    BridgeConfig,
    BridgeCore,
    LtlCore,
    RoleCore,
    RouterConfig,
    RouterCore,
    TcpCore,
)

__all__ = ["KINDS", "CoreKind", "Parameter", "kind_of"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a core: its default, the types of its values, and what it means."""

    name: str
    default: Any
    type: Any
    meaning: str


def _attributes(kind):
    """Meaning of each attribute in the docstring of a configuration class."""
    text = textwrap.dedent(kind.__doc__.partition("Attributes\n    ----------\n")[2])
    found = {}
    for entry in re.split(r"\n(?=\S)", text):
        names, colon, rest = entry.partition(" : ")
        if not colon:
            break
        meaning = rest.partition("\n")[2]
        # Roles of Sphinx mean nothing outside of it.
        meaning = re.sub(r":\w+:`~?([^`]*)`", lambda role: role[1].rpartition(".")[2], meaning)
        meaning = " ".join(meaning.replace("``", "").split())
        found |= dict.fromkeys(names.split(", "), meaning)
    return found


@dataclass(frozen=True)
class CoreKind:
    """A core that other designs can use.

    Attributes
    ----------
    name, title : str
        Its name for commands; what it is.
    config : type
        A dataclass of parameters whose docstring explains them.
    make : callable
        ``make(config, own)``: the component, for an object of ``config`` and the values of ``own``.
    own : tuple of Parameter
        Parameters beside those of ``config``.
    hidden : tuple of str
        Parameters of ``config`` that nobody outside needs.
    presets : dict
        Objects of ``config`` by name, from whose values a configuration may start; the first one
        is the default.
    figures, proofs : tuple of str
        How the names of its figures begin, and the names of the parts that are proved.
    page : str
        The document that explains it.
    """

    name: str
    title: str
    config: type
    make: Callable
    page: str
    figures: tuple[str, ...]
    proofs: tuple[str, ...]
    own: tuple[Parameter, ...] = ()
    hidden: tuple[str, ...] = ()
    presets: dict = field(default_factory=dict)

    def base(self, preset=None):
        """The configuration that values are put into; without ``preset`` the default."""
        if not self.presets:
            return self.config()
        return self.presets[preset or next(iter(self.presets))]

    def parameters(self, preset=None):
        """All parameters, with the defaults of a preset."""
        meanings, base = _attributes(self.config), self.base(preset)
        of_config = [
            Parameter(f.name, getattr(base, f.name), f.type, meanings.get(f.name, ""))
            for f in dataclasses.fields(self.config)
            if f.name not in self.hidden
        ]
        return [*self.own, *of_config]

    def component(self, values):
        """The component for ``values``: parameters by name, and ``preset``; checked.

        Raises :class:`TrebuchetError`, one line, for a name that there is not or a bad value.
        """
        values = dict(values)
        # Without presets of its own a core may have a parameter of that name.
        preset = values.pop("preset", None) if self.presets else None
        if preset is not None and preset not in self.presets:
            known = ", ".join(self.presets)
            raise TrebuchetError(f"preset must be one of {known}, not {preset!r}")
        known = {parameter.name: parameter for parameter in self.parameters(preset)}
        for name, value in values.items():
            if name not in known:
                names = [*known, *(["preset"] if self.presets else [])]
                near = did_you_mean(name, names) or f"; it has: {', '.join(names)}"
                raise TrebuchetError(f"core {self.name} has no parameter {name!r}{near}")
            values[name] = _typed(name, value, known[name].type)
        own = {parameter.name: parameter.default for parameter in self.own}
        own |= {name: values.pop(name) for name in tuple(values) if name in own}
        own = {name: _parsed(name, value) for name, value in own.items()}
        try:
            return self.make(dataclasses.replace(self.base(preset), **values), own)
        except ValueError as error:
            raise TrebuchetError(" ".join(str(error).split())) from error


_WORDS = {int: "an integer", bool: "true or false", str: "a text"}


def _typed(name, value, wanted):
    """``value`` if it is of the type ``wanted``; lists of integers as tuples."""
    if wanted == tuple[int, ...]:
        if isinstance(value, list | tuple) and all(type(item) is int for item in value):
            return tuple(value)
        raise TrebuchetError(f"{name} must be a list of integers, not {value!r}")
    if wanted == int | None:
        if value is None:
            return value
        wanted = int
    if type(value) is not wanted:
        raise TrebuchetError(f"{name} must be {_WORDS[wanted]}, not {value!r}")
    return value


def _parsed(name, value):
    """Addresses as numbers; anything else as it is."""
    if name == "mac":
        if not re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", value):
            raise TrebuchetError(f"mac must be six bytes such as 02:00:00:00:00:01, not {value!r}")
        return int(value.replace(":", ""), 16)
    if name == "ip":
        try:
            return int(ipaddress.IPv4Address(value))
        except ValueError as error:
            raise TrebuchetError(f"ip must be an IPv4 address, not {value!r}") from error
    if name == "width" and value not in DATA_WIDTHS:
        raise TrebuchetError(f"width must be one of {DATA_WIDTHS}, not {value!r}")
    return value


_MAC = Parameter("mac", "02:00:00:00:00:01", str, "MAC address after reset; a register.")
_IP = Parameter("ip", "192.0.2.2", str, "IPv4 address after reset; a register.")
_ROLE = (
    Parameter("width", 32, int, "Data path of the memory in bits: 32, 64 or 128."),
    Parameter("jobs", False, bool, "Streams of jobs and answers, beside the registers."),
)


def _role(kind):
    def make(config, own):
        return RoleCore(kind, dataclasses.asdict(config), own["width"], own["jobs"])

    return make


KINDS = {
    kind.name: kind
    for kind in (
        CoreKind(
            "tcp",
            "TCP offload engine, from Ethernet to services",
            tcp.TcpConfig,
            lambda config, own: TcpCore(config, **own),
            "docs/tcp.md",
            ("tcp.",),
            ("cores.tcp.", "cores.net."),
            own=(
                Parameter("hosts", True, bool, "ARP, ping and UDP echo are answered inside."),
                _MAC,
                _IP,
                Parameter("enable", False, bool, "Switched on after reset; a register."),
            ),
            hidden=("tag_width", "trace", "isn_start"),
            presets={"tiny": tcp.TINY, "small": tcp.SMALL, "full": tcp.FULL},
        ),
        CoreKind(
            "router",
            "virtual-channel routers: crossbar, ring, mesh",
            RouterConfig,
            lambda config, own: RouterCore(config),
            "docs/network.md",
            ("router.",),
            ("cores.router.",),
        ),
        CoreKind(
            "ltl",
            "LTL: reliable messages between FPGAs over UDP",
            LtlConfig,
            lambda config, own: LtlCore(config, **own),
            "docs/network.md",
            ("ltl.",),
            ("cores.ltl.",),
            own=(_MAC, _IP),
            hidden=("seq_bits",),
        ),
        CoreKind(
            "bridge",
            "bridge between two MACs, with stream engines",
            BridgeConfig,
            lambda config, own: BridgeCore(config, **own),
            "docs/network.md",
            ("bridge.",),
            ("cores.bridge.", "cores.engines."),
            own=(_MAC,),
        ),
        CoreKind(
            "ecg",
            "ECG classifier of samples in memory",
            EcgConfig,
            _role("ecg"),
            "docs/ecg-gateware.md",
            ("ecg.",),
            ("cores.roles.ecg.", "cores.roles.slot."),
            own=_ROLE,
            hidden=("stream",),
        ),
        CoreKind(
            "matmul",
            "matrix multiplier of integers in memory",
            MatmulConfig,
            _role("matmul"),
            "docs/matmul.md",
            ("matmul.",),
            ("cores.roles.matmul.", "cores.roles.slot."),
            own=_ROLE,
        ),
    )
}


def kind_of(name):
    """The kind called ``name``; raises :class:`TrebuchetError` if there is none."""
    if name not in KINDS:
        near = did_you_mean(name, KINDS) or f"; there are: {', '.join(KINDS)}"
        raise TrebuchetError(f"there is no core {name!r}{near}")
    return KINDS[name]
