"""What a board's shell is made of, as data: its roles, the services that clients reach, engines.

A board file, a TOML file or the command line says it; TCP ports, arbiter ports, memory regions,
register blocks and C constants follow from it (``cores/shell.py``). What a role's options may
be the role itself says, when the plan is built.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .errors import TrebuchetError
from .probe_plan import ProbeSet
from .role_folders import role_of_instance

__all__ = [
    "ENGINE_PLACES",
    "EngineEntry",
    "FRAMINGS",
    "MAX_INSTANCES",
    "MAX_ROLES",
    "MAX_SERVICES",
    "WEB_OPTIONS",
    "Plan",
    "PlanError",
    "RoleEntry",
    "ServiceEntry",
    "kind_and_options",
    "load_plan",
]

#: What lies between a TCP port and what answers there: RFC 862; RFC 863; HTTP by firmware; the
#: fixed page, which firmware writes; SMP messages to a role; files over HTTP by gateware.
FRAMINGS = ("echo", "discard", "http", "page", "smp", "web")
#: Where a stream engine can be: in-line in the bridge, on frames from the network's port to the
#: host's (``inbound``) or the other way.
ENGINE_PLACES = ("inbound", "outbound")
#: Roles of one shell; the field of a job has room for 31.
MAX_ROLES = 16
#: TCP ports of one shell.
MAX_SERVICES = 8
MAX_INSTANCES = 64
#: Options of a service of framing ``web``, with their least, usual and greatest values: bytes of
#: external memory, of which an image has half; request heads that are parsed at a time.
WEB_OPTIONS = {"memory": (1 << 16, 1 << 21, 1 << 28), "lanes": (1, 1, 8)}
#: The first role's TCP port; each further one has the next.
SMP_PORT = 4000
_NAME = re.compile(r"[a-z][a-z0-9_]{0,23}")
#: Names of register blocks and C symbols that are taken.
_RESERVED = frozenset(
    ("shell", "tcp", "parser", "sender", "smp", "mailbox", "cluster", "ltl", "router", "none")
    + ("probe", "web")
)


class PlanError(TrebuchetError, ValueError):
    """A plan that cannot be built."""


def _check(good, what):
    if not good:
        raise PlanError(what)


def _is_int(value, low, high):
    return type(value) is int and low <= value <= high


@dataclass(frozen=True, kw_only=True)
class RoleEntry:
    """A role of the plan.

    Attributes
    ----------
    kind : str
        Which role: the name of its folder in ``cores/roles``, or in a folder of the user's.
    name : str
        What it is called: by clients, on the status page, in registers. Left out: ``kind``.
    instances : int
        How many of it, 1 to 64; the next job goes to an idle one.
    options : mapping
        Values of its configuration class, by name; what is left out is as that class says.
    """

    kind: str
    name: str = ""
    instances: int = 1
    options: Mapping[str, bool | int | str] = field(default_factory=dict)

    def __post_init__(self):
        _check(
            isinstance(self.kind, str) and _NAME.fullmatch(self.kind),
            f"a role must be a lower-case name of at most 24 characters, not {self.kind!r}",
        )
        object.__setattr__(self, "name", self.name or self.kind)
        _check(
            isinstance(self.name, str)
            and _NAME.fullmatch(self.name)
            and role_of_instance(self.name) == self.name  # not as instances are called
            and self.name not in _RESERVED,
            f"role {self.kind!r}: its name must be lower-case, of at most 24 characters, not end "
            f"in a number after _, and be none of the shell's own, not {self.name!r}",
        )
        _check(
            _is_int(self.instances, 1, MAX_INSTANCES),
            f"role {self.name!r}: instances must be 1 to {MAX_INSTANCES}, not {self.instances!r}",
        )
        object.__setattr__(self, "options", _options(f"role {self.name!r}", self.options))

    def __hash__(self):
        return hash((self.kind, self.name, self.instances, tuple(sorted(self.options.items()))))

    @classmethod
    def parse(cls, text):
        """From ``KIND[:KEY=VALUE,…]``; the keys ``name`` and ``instances`` are the entry's own."""
        kind, options = kind_and_options(text, "a role must be", text)
        own = {key: options.pop(key) for key in ("name", "instances") if key in options}
        return cls(kind=kind, options=options, **own)


def _options(what, options):
    """A copy of the options of an entry, which must be an option's plain values by name."""
    good = isinstance(options, Mapping) and all(
        isinstance(key, str) and type(value) in (bool, int, str) for key, value in options.items()
    )
    _check(
        good,
        f"{what}: options must be names with numbers, words or true and false, not {options!r}",
    )
    return dict(options)


def kind_and_options(text, must_be, whole, words=("KIND", "KEY")):
    """Return kind and options of ``KIND[:KEY=VALUE,…]``, the values as numbers, booleans or words.

    Raises :class:`PlanError`, whose message begins with ``must_be``, calls kind and key by
    ``words`` and shows ``whole``.
    """
    kind, colon, rest = text.partition(":")
    options = {}
    for item in rest.split(",") if colon else ():
        key, equals, value = item.partition("=")
        name, each = words[0], f"{words[1]}=VALUE"
        _check(key and equals, f"{must_be} {name} or {name}:{each},{each}, not {whole!r}")
        _check(key not in options, f"{whole!r} says {key} twice; leave one of them out")
        options[key] = _value(value)
    return kind, options


def _value(text):
    """A number, true or false, or the word as it is."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text, 0)
    except ValueError:
        return text


@dataclass(frozen=True, kw_only=True)
class ServiceEntry:
    """A TCP port of the plan.

    Attributes
    ----------
    port : int
        TCP port, 1 to 65535.
    framing : str
        One of :data:`FRAMINGS`. There is at most one service of each but ``smp``.
    role : str or None
        With ``smp``: the name of the role that messages go to which do not name one themselves;
        None: they are answered ``NO_ROLE``.
    options : mapping
        With ``web``: those of :data:`WEB_OPTIONS`; what is left out has its usual value.
    """

    port: int
    framing: str
    role: str | None = None
    options: Mapping[str, bool | int | str] = field(default_factory=dict)

    def __post_init__(self):
        _check(
            _is_int(self.port, 1, 65535),
            f"a service's TCP port must be 1 to 65535, not {self.port!r}",
        )
        _check(
            self.framing in FRAMINGS,
            f"port {self.port}: framing must be one of {', '.join(FRAMINGS)}, not {self.framing!r}",
        )
        _check(
            self.role is None or self.framing == "smp",
            f"port {self.port}: only framing smp has a role, not {self.framing}",
        )
        options = _options(f"port {self.port}", self.options)
        object.__setattr__(self, "options", options)
        usual = WEB_OPTIONS if self.framing == "web" else {}
        for name, value in options.items():
            allowed = f"it may have {', '.join(usual)}" if usual else "only framing web has options"
            _check(name in usual, f"port {self.port}: {allowed}, not {name}")
            low, _, high = usual[name]
            _check(
                _is_int(value, low, high) and (name != "memory" or value & (value - 1) == 0),
                f"port {self.port}: {name} must be {'a power of two from ' * (name == 'memory')}"
                f"{low} to {high}, not {value!r}",
            )

    def __hash__(self):
        return hash((self.port, self.framing, self.role, tuple(sorted(self.options.items()))))

    def option(self, name):
        """Value of an option, its usual one if the entry does not say it."""
        return self.options.get(name, WEB_OPTIONS[name][1])

    @classmethod
    def parse(cls, text):
        """From ``PORT=FRAMING``, ``PORT=smp:ROLE`` or ``PORT=web:KEY=VALUE,…``."""
        port, equals, rest = text.partition("=")
        framing, colon, role = rest.partition(":")
        good = equals and port.isascii() and port.isdigit() and framing
        _check(good, f"a service must be PORT=FRAMING or PORT=smp:ROLE, not {text!r}")
        if framing == "web" and colon:
            _, options = kind_and_options(rest, "a service must be PORT= and", text, ("web", "KEY"))
            return cls(port=int(port), framing=framing, options=options)
        return cls(port=int(port), framing=framing, role=role or None)


@dataclass(frozen=True, kw_only=True)
class EngineEntry:
    """A stream engine of the plan (``cores/engines/contract.py``).

    Attributes
    ----------
    place : str
        Where it is, one of :data:`ENGINE_PLACES`; there is at most one at each.
    kind : str
        Which engine: the name of its folder in ``cores/engines``.
    options : mapping
        Values of its configuration class, by name; what is left out is as that class says.
    """

    place: str
    kind: str
    options: Mapping[str, bool | int | str] = field(default_factory=dict)

    def __post_init__(self):
        _check(
            self.place in ENGINE_PLACES,
            f"an engine's place must be one of {', '.join(ENGINE_PLACES)}, not {self.place!r}",
        )
        _check(
            isinstance(self.kind, str) and _NAME.fullmatch(self.kind),
            f"an engine must be a lower-case name of at most 24 characters, not {self.kind!r}",
        )
        object.__setattr__(self, "options", _options(f"engine {self.name!r}", self.options))

    def __hash__(self):
        return hash((self.place, self.kind, tuple(sorted(self.options.items()))))

    @property
    def name(self):
        """What it is called, in registers."""
        return f"{self.place}_{self.kind}"

    @classmethod
    def parse(cls, text):
        """From ``PLACE=KIND[:KEY=VALUE,…]``."""
        place, equals, rest = text.partition("=")
        _check(
            equals and rest, f"an engine must be PLACE=KIND or PLACE=KIND:KEY=VALUE, not {text!r}"
        )
        kind, options = kind_and_options(rest, "an engine must be PLACE= and", text)
        return cls(place=place, kind=kind, options=options)


#: Without an SMP service, which follow from the roles.
_STANDARD = (
    ServiceEntry(port=7, framing="echo"),
    ServiceEntry(port=9, framing="discard"),
    ServiceEntry(port=80, framing="http"),
    ServiceEntry(port=8080, framing="page"),
)


@dataclass(frozen=True)
class Plan:
    """Roles and services of a shell, and stream engines around it.

    Attributes
    ----------
    roles : tuple of RoleEntry
        Role k of the field ``role`` of a job is ``roles[k]``.
    services : tuple of ServiceEntry
        Sorted by port. Left out: echo 7, discard 9, http 80, page 8080, and SMP from 4000 on, a
        port for each role while there are any left; the others are reached by their number in a
        message's header.
    engines : tuple of EngineEntry
        Sorted by place; on a board without a bridge there is no place for one.
    probes : ProbeSet or None
        Signals that a trace core samples (docs/probe.md); None: there is no trace core.
    """

    roles: tuple = ()
    services: tuple = ()
    engines: tuple = ()
    probes: ProbeSet | None = None

    def __post_init__(self):
        good = self.probes is None or isinstance(self.probes, ProbeSet)
        _check(good, f"a plan's probes must be a ProbeSet or None, not {self.probes!r}")
        kinds = {"roles": RoleEntry, "services": ServiceEntry, "engines": EngineEntry}
        for name, kind in kinds.items():
            value = getattr(self, name)
            good = isinstance(value, tuple) and all(isinstance(item, kind) for item in value)
            _check(good, f"a plan's {name} must be a tuple of {kind.__name__}, not {value!r}")
        _check(
            len(self.roles) <= MAX_ROLES,
            f"a plan must have at most {MAX_ROLES} roles, not {len(self.roles)}",
        )
        names = [entry.name for entry in self.roles]
        for name in names:
            _check(names.count(name) == 1, f"two roles of the plan are called {name!r}")
        services = self.services or self._standard()
        services = tuple(sorted(services, key=lambda service: service.port))
        object.__setattr__(self, "services", services)
        self._check_services(names)
        self._check_engines(names)

    def _check_engines(self, names):
        engines = tuple(sorted(self.engines, key=lambda engine: engine.place))
        object.__setattr__(self, "engines", engines)
        places = [engine.place for engine in engines]
        for engine in engines:
            _check(places.count(engine.place) == 1, f"two engines of the plan are {engine.place}")
            _check(engine.name not in names, f"a role has the name of engine {engine.name!r}")

    def _standard(self):
        room = MAX_SERVICES - len(_STANDARD)
        roles = [entry.name for entry in self.roles[:room]] or [None]
        smp = (
            ServiceEntry(port=SMP_PORT + k, framing="smp", role=role)
            for k, role in enumerate(roles)
        )
        return (*_STANDARD, *smp)

    def _check_services(self, names):
        services = self.services
        _check(
            len(services) <= MAX_SERVICES,
            f"a plan must have at most {MAX_SERVICES} services, not {len(services)}",
        )
        for one, other in zip(services, services[1:], strict=False):
            _check(
                one.port != other.port,
                f"two services of the plan have TCP port {one.port}: {one.framing} and "
                f"{other.framing}; give one of them another",
            )
        for service in services:
            same = [other.port for other in services if other.framing == service.framing]
            _check(
                service.framing == "smp" or len(same) == 1,
                f"only smp may be on several TCP ports, not {service.framing} on "
                f"{', '.join(map(str, same))}",
            )
            _check(
                service.role is None or service.role in names,
                f"port {service.port}: there is no role {service.role!r} in the plan; there are: "
                f"{', '.join(names) or 'none'}",
            )
        _check(
            any(service.framing == "smp" for service in services) or not self.roles,
            "a plan with roles must have a service of framing smp, by which clients reach them",
        )

    @classmethod
    def of_roles(cls, *texts):
        """The plan with these roles, each as :meth:`RoleEntry.parse` takes it; usual services."""
        return cls(tuple(map(RoleEntry.parse, texts)))

    def number(self, name):
        """The number of the role ``name``, by which jobs and messages name it."""
        return next(k for k, entry in enumerate(self.roles) if entry.name == name)

    def of(self, *framings):
        """The services with one of these framings, in the order of their ports."""
        return tuple(service for service in self.services if service.framing in framings)

    def without(self, *framings):
        """The plan without these services."""
        services = tuple(s for s in self.services if s.framing not in framings)
        return replace(self, services=services)

    def describe(self):
        """In plain values, for reports and hashes."""
        engines = [[e.place, e.kind, dict(sorted(e.options.items()))] for e in self.engines]
        probes = {} if self.probes is None else {"probes": self.probes.describe()}
        return (
            ({"engines": engines} if engines else {})
            | probes
            | {
                "roles": [
                    [entry.kind, entry.name, entry.instances, dict(sorted(entry.options.items()))]
                    for entry in self.roles
                ],
                "services": [
                    [s.port, s.framing, s.role]
                    + ([dict(sorted(s.options.items()))] if s.options else [])
                    for s in self.services
                ],
            }
        )


def load_plan(path):
    """The plan of a TOML file: tables ``[[role]]``, ``[[service]]``, ``[[engine]]``, ``[probes]``
    with the entries' fields.

    Options of a role or an engine are further keys of its table. Raises PlanError in one line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(
            f"plan {str(path)!r} cannot be read: {error}; docs/plan.md has an example"
        ) from error
    try:
        content = tomllib.loads(text)
        return _from_tables(content)
    except (tomllib.TOMLDecodeError, TrebuchetError) as error:
        raise PlanError(f"plan {str(path)!r}: {error}; docs/plan.md has an example") from error


def _from_tables(content):
    unknown = content.keys() - {"role", "service", "engine", "probes"}
    _check(
        not unknown,
        f"it may have [[role]], [[service]], [[engine]] and [probes], not {sorted(unknown)}",
    )
    entries = {}
    for name in ("role", "service", "engine"):
        tables = content.get(name, [])
        good = isinstance(tables, list) and all(isinstance(table, dict) for table in tables)
        _check(good, f"{name} must be tables, each begun by [[{name}]]")
        entries[name] = tables
    roles = tuple(_role(dict(table)) for table in entries["role"])
    services = tuple(_service(dict(table)) for table in entries["service"])
    engines = tuple(_engine(dict(table)) for table in entries["engine"])
    return Plan(roles, services, engines, _probes(content.get("probes")))


def _probes(table):
    if table is None:
        return None
    good = isinstance(table, dict) and {"signals"} <= table.keys() <= {"signals", "depth"}
    _check(good, "[probes] must have signals, may have depth, and nothing else")
    _check(isinstance(table["signals"], list), "signals of [probes] must be a list of paths")
    return ProbeSet.of(table["signals"], table.get("depth"))


def _engine(table):
    _check({"place", "kind"} <= table.keys(), "each [[engine]] must have a place and a kind")
    own = {key: table.pop(key) for key in ("place", "kind")}
    return EngineEntry(options=table, **own)


def _role(table):
    _check("kind" in table, "each [[role]] must have a kind")
    own = {key: table.pop(key) for key in ("kind", "name", "instances") if key in table}
    return RoleEntry(options=table, **own)


def _service(table):
    options = WEB_OPTIONS.keys() if table.get("framing") == "web" else set()
    _check(
        {"port", "framing"} <= table.keys() <= {"port", "framing", "role"} | options,
        f"each [[service]] must have port and framing, may have role, and nothing else: "
        f"{sorted(table)}",
    )
    own = {key: table.pop(key) for key in ("port", "framing", "role") if key in table}
    return ServiceEntry(options=table, **own)
