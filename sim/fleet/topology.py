"""The topology file of several boards: what it may say, and what is wrong with one that does not.

YAML; only ``boards`` is needed. Times are in µs, rates in Mb/s, sizes in KiB, chances as 0.03
or 3%::

    clock_mhz: 125            # what a simulated cycle stands for; a board's port moves a byte in it
    link: {rate: 1000, delay: 1, queue: 128}       # of every link, unless its own says otherwise
    host: {address: 192.0.2.1/24, link: {delay: 5}}
    boards:
      - {name: a, ip: 192.0.2.2}
      - {name: b, ip: 192.0.2.3, mac: "02:00:00:00:00:03", link: {loss: 1%, reorder: 0.5%}}
    ltl:
      - {from: a, to: b, class: 3, timeout: 4000}

An entry of ``ltl`` lets the roles of board ``from`` call the role of board ``to``: a connection
for requests there, one for replies back. Its ``timeout`` is 1000 µs unless told otherwise, not
the 50 of the paper's 40 Gb/s: at 1 Gb/s a full frame alone takes 12 µs on each link, several
share a port, and a full queue of 128 KiB takes 1049 µs to drain. After eight time-outs in a row a
connection has failed. ``class`` is the priority class of the frames; a board has one for all
(:meth:`Topology.dscp`), so connections of the same board must be of the same.

A link has ``rate``, ``delay``, ``queue`` (what may wait for it in the switch), ``loss``,
``duplicate``, ``reorder``, ``corrupt``, ``ecn: {min: 40, max: 160, chance: 20%}`` and ``pfc:
{classes: [3], xoff: 20, xon: 10}``. ``rate`` and the impairments hold for both directions. Unless
told otherwise ``rate`` is 1000, or a byte a cycle of a clock that is slower.
"""

import ipaddress
import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...models.errors import TrebuchetError
from ...soc.peers import Peer
from ..options import chance_of

_EXAMPLE = "docs/network.md has an example"

__all__ = [
    "PEERS",
    "BoardSpec",
    "Connection",
    "Link",
    "Topology",
    "load",
    "parse",
    "uniform",
]

#: Peers that a simulated board is built for, if there are any connections.
PEERS = 3

_CLASSES = range(8)
#: No number of a file is more, in whatever unit; the harness counts cycles and bytes in 64 bits.
_MOST = 1e9
#: The engine's time wraps at 65536 µs; a deadline must lie in the half that is to come.
_LONGEST_TIMEOUT_US = 32767


class _Node:
    """A mapping of the file, its keys taken one by one; what is left over is an error."""

    def __init__(self, where: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise TrebuchetError(f"{where} must be a mapping of names to values, not {value!r}")
        self.where, self.left = where, dict(value)

    def fail(self, key: str, must: str, value: Any) -> TrebuchetError:
        return TrebuchetError(f"{self.where}: {key} must be {must}, not {value!r}")

    def take(self, key: str, default: Any = None) -> Any:
        return self.left.pop(key, default)

    def number(self, key: str, default: float, low: float = 0, above: bool = False) -> float:
        value = self.take(key, default)
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not (value > low if above else value >= low):
            raise self.fail(key, f"a number {'above' if above else 'of at least'} {low:g}", value)
        if value > _MOST:
            raise self.fail(key, f"at most {_MOST:g}", value)
        return float(value)

    def chance(self, key: str, default: float) -> float:
        value = self.take(key, default)
        number = chance_of(value)
        if number is None:
            raise self.fail(key, "a chance from 0 to 1 or in per cent, like 3%", value)
        return number

    def items(self, key: str) -> list[Any]:
        value = self.take(key, [])
        if not isinstance(value, list):
            raise self.fail(key, "a list", value)
        return value

    def end(self, *known: str) -> None:
        if self.left:
            name = str(next(iter(self.left)))
            raise TrebuchetError(
                f"{self.where} has no {name!r}; it may have {', '.join(sorted(known))}"
            )


@dataclass(frozen=True)
class Link:
    """A link between a port of the switch and a board, or the host."""

    rate: float = 1000
    delay: float = 1
    queue: float = 128
    loss: float = 0
    duplicate: float = 0
    reorder: float = 0
    corrupt: float = 0
    ecn_min: float = 0
    ecn_max: float = 0
    ecn_chance: float = 0
    classes: tuple[int, ...] = ()
    xoff: float = 0
    xon: float = 0

    def plan(self, name: str, clock_mhz: float) -> str:
        """The line of the harness's plan (``harness/plan.h``): bytes and cycles."""
        both = {"delay": round(self.delay * clock_mhz), "loss": self.loss}
        both |= {k: getattr(self, k) for k in ("duplicate", "reorder", "corrupt")}
        values = {"rate": self.rate / 8 / clock_mhz, "ecn_chance": self.ecn_chance}
        values |= {
            k: round(getattr(self, k) * 1024)
            for k in ("queue", "ecn_min", "ecn_max", "xoff", "xon")
        }
        values["lossless"] = sum(1 << c for c in self.classes)
        values |= {f"{way}_{k}": v for k, v in both.items() for way in ("up", "down")}
        return " ".join(["port", name, *(f"{k}={v:.9g}" for k, v in values.items())])


def _link(where: str, value: Any, default: Link, clock_mhz: float) -> Link:
    node = _Node(where, value)
    rate = node.number("rate", default.rate, above=True)
    if rate > 8 * clock_mhz:
        raise node.fail("rate", f"at most {8 * clock_mhz:g}, a byte a cycle of clock_mhz", rate)
    values: dict[str, Any] = {
        "rate": rate,
        "delay": node.number("delay", default.delay),
        "queue": node.number("queue", default.queue, 2),
    }
    for key in ("loss", "duplicate", "reorder", "corrupt"):
        values[key] = node.chance(key, getattr(default, key))
    for key in ("ecn_min", "ecn_max", "ecn_chance", "classes", "xoff", "xon"):
        values[key] = getattr(default, key)
    if "ecn" in node.left:
        ecn = _Node(f"{where}.ecn", node.take("ecn"))
        values["ecn_max"] = ecn.number("max", 160, above=True)
        values["ecn_min"] = ecn.number("min", 40)
        values["ecn_chance"] = ecn.chance("chance", 0.2)
        if values["ecn_min"] > values["ecn_max"]:
            raise ecn.fail("min", f"at most max, {values['ecn_max']:g}", values["ecn_min"])
        ecn.end("min", "max", "chance")
    if "pfc" in node.left:
        values |= _pfc(_Node(f"{where}.pfc", node.take("pfc")))
    node.end("rate", "delay", "queue", "loss", "duplicate", "reorder", "corrupt", "ecn", "pfc")
    return Link(**values)


def _pfc(node: _Node) -> dict[str, Any]:
    classes = node.items("classes")
    if not classes or any(type(c) is not int or c not in _CLASSES for c in classes):
        raise node.fail("classes", "a list of classes from 0 to 7", classes)
    xoff = node.number("xoff", 20, above=True)
    xon = node.number("xon", xoff / 2)
    if xon > xoff:
        raise node.fail("xon", f"at most xoff, {xoff:g}", xon)
    node.end("classes", "xoff", "xon")
    return {"classes": tuple(sorted(set(classes))), "xoff": xoff, "xon": xon}


@dataclass(frozen=True)
class BoardSpec:
    """A board: its name, its addresses, its link."""

    name: str
    ip: str
    mac: str
    link: Link = field(default_factory=Link)

    @property
    def mac_int(self) -> int:
        """The MAC address as a number, the first byte on the wire most significant."""
        return int(self.mac.replace(":", ""), 16)

    @property
    def ip_int(self) -> int:
        """The IP address as a number."""
        return int(ipaddress.IPv4Address(self.ip))


@dataclass(frozen=True)
class Connection:
    """The roles of board ``source`` may call the role of board ``target``."""

    source: str
    target: str
    priority: int = 0
    timeout_us: float = 1000


@dataclass(frozen=True)
class Topology:
    """Boards around one switch, the host at a port of it, and the connections between boards."""

    boards: tuple[BoardSpec, ...]
    connections: tuple[Connection, ...] = ()
    clock_mhz: float = 125
    host_ip: str = "192.0.2.1"
    prefix: int = 24
    host_link: Link = field(default_factory=Link)

    def board(self, name: str) -> BoardSpec:
        """The board of that name."""
        return next(b for b in self.boards if b.name == name)

    def connections_of(self, name: str) -> list[Connection]:
        """The connections that a board is an end of."""
        return [c for c in self.connections if name in (c.source, c.target)]

    def neighbours(self, name: str) -> list[str]:
        """The peers of a board by name; peer p is at p - 1. They are in the file's order."""
        ends = {end for c in self.connections_of(name) for end in (c.source, c.target)}
        return [b.name for b in self.boards if b.name in ends - {name}]

    def peers(self, name: str) -> tuple[Peer, ...]:
        """The table of a board's peers, for its firmware."""
        return tuple(self._peer(name, other) for other in self.neighbours(name))

    def _peer(self, name: str, other: str) -> Peer:
        both = [c for c in self.connections_of(name) if other in (c.source, c.target)]
        board = self.board(other)
        return Peer(
            mac=board.mac_int,
            ip=board.ip_int,
            theirs=self.neighbours(other).index(name) + 1,
            timeout_us=math.ceil(max(c.timeout_us for c in both)),
            called=any(c.target == other for c in both),
        )

    def dscp(self, name: str) -> int:
        """What a board's LTL frames carry, so that the switch puts them into their class."""
        return max((c.priority << 3 for c in self.connections_of(name)), default=0)


def _address(node: _Node, key: str, value: Any) -> ipaddress.IPv4Address:
    try:
        return ipaddress.IPv4Address(value if isinstance(value, str) else "")
    except ValueError:
        raise node.fail(key, "an IPv4 address like 192.0.2.2", value) from None


def _reserved(network: ipaddress.IPv4Network) -> tuple[ipaddress.IPv4Address, ...]:
    return network.network_address, network.broadcast_address


def _default_ip(where: str, network: ipaddress.IPv4Network, index: int) -> str:
    """The boards' addresses follow the host's usual one, the network's first."""
    room = network.num_addresses - 3
    if index >= room:
        raise TrebuchetError(
            f"{where} must have an ip, or the host a larger network: {network} has addresses for "
            f"{room} boards"
        )
    return str(network[index + 2])


def _board(where: str, value: Any, index: int, default: Link, t: dict[str, Any]) -> BoardSpec:
    node = _Node(where, value)
    name = node.take("name", f"board{index}")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_-]*", name) or name == "host":
        raise node.fail("name", "lower-case letters, digits, - and _, and not 'host'", name)
    network = t["network"]
    given = node.take("ip") if "ip" in node.left else _default_ip(where, network, index)
    ip = _address(node, "ip", given)
    if ip not in network:
        raise node.fail("ip", f"in the host's network {network}", str(ip))
    if ip in _reserved(network):
        raise node.fail("ip", f"neither the first nor the last of {network}", str(ip))
    mac = node.take("mac", f"02:00:00:00:00:{index + 2:02x}")
    pattern = r"[0-9a-f][02468ace](:[0-9a-f]{2}){5}"
    if not isinstance(mac, str) or not re.fullmatch(pattern, mac) or not int(mac[:2], 16) & 2:
        raise node.fail("mac", "a local unicast MAC address like 02:00:00:00:00:02", mac)
    link = _link(f"{where}.link", node.take("link", {}), default, t["clock_mhz"])
    node.end("name", "ip", "mac", "link")
    return BoardSpec(name, str(ip), mac, link)


def _connection(where: str, value: Any, names: set[str]) -> Connection:
    node = _Node(where, value)
    ends = []
    for key in ("from", "to"):
        ends.append(node.take(key))
        if not isinstance(ends[-1], str) or ends[-1] not in names:
            raise node.fail(key, f"one of the boards {', '.join(sorted(names))}", ends[-1])
    if ends[0] == ends[1]:
        raise node.fail("to", "another board than from", ends[1])
    priority = node.take("class", 0)
    if type(priority) is not int or priority not in _CLASSES:
        raise node.fail("class", "from 0 to 7", priority)
    timeout = node.number("timeout", Connection.timeout_us, above=True)
    if timeout > _LONGEST_TIMEOUT_US:
        raise node.fail("timeout", f"at most {_LONGEST_TIMEOUT_US} µs", timeout)
    node.end("from", "to", "class", "timeout")
    return Connection(ends[0], ends[1], priority, timeout)


def _unique(where: str, what: str, values: list[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise TrebuchetError(f"{where}: {what} must differ; {value} is there twice")


def _check_connections(where: str, topology: Topology) -> None:
    """What the simulated boards cannot do is an error."""
    for board in topology.boards:
        peers = topology.neighbours(board.name)
        if len(peers) > PEERS:
            raise TrebuchetError(
                f"{where}: board {board.name} must have LTL connections with at most {PEERS} "
                f"others, not with {len(peers)}: {', '.join(peers)}"
            )
        classes = sorted({c.priority for c in topology.connections_of(board.name)})
        if len(classes) > 1:
            raise TrebuchetError(
                f"{where}: LTL connections of board {board.name} must be of one class, since a "
                f"board has one for all its frames; not of {', '.join(map(str, classes))}"
            )


def parse(document: Any, where: str = "topology") -> Topology:
    """The topology that a parsed YAML document describes."""
    node = _Node(where, document)
    clock = node.number("clock_mhz", 125, above=True)
    fastest = Link(rate=min(Link.rate, 8 * clock))
    default = _link(f"{where}: link", node.take("link", {}), fastest, clock)
    host = _Node(f"{where}: host", node.take("host", {}))
    address = host.take("address", "192.0.2.1/24")
    try:
        interface = ipaddress.IPv4Interface(address if isinstance(address, str) else "")
        if not 8 <= interface.network.prefixlen <= 29:
            raise ValueError
        if interface.ip in _reserved(interface.network):
            raise ValueError
    except ValueError:
        raise host.fail("address", "an address with a prefix like 192.0.2.1/24", address) from None
    host_link = _link(f"{where}: host.link", host.take("link", {}), default, clock)
    host.end("address", "link")
    shared = {"network": interface.network, "clock_mhz": clock}
    listed = node.items("boards")
    if not 1 <= len(listed) <= 16:
        raise node.fail("boards", "a list of 1 to 16 boards", len(listed))
    boards = [
        _board(f"{where}: boards[{k}]", value, k, default, shared) for k, value in enumerate(listed)
    ]
    _unique(where, "names of boards", [b.name for b in boards])
    _unique(where, "IP addresses", [str(interface.ip), *(b.ip for b in boards)])
    _unique(where, "MAC addresses", [b.mac for b in boards])
    names = {b.name for b in boards}
    connections = [
        _connection(f"{where}: ltl[{k}]", value, names) for k, value in enumerate(node.items("ltl"))
    ]
    _unique(where, "LTL connections", [f"{c.source} to {c.target}" for c in connections])
    node.end("clock_mhz", "link", "host", "boards", "ltl")
    prefix = interface.network.prefixlen
    topology = Topology(
        tuple(boards), tuple(connections), clock, str(interface.ip), prefix, host_link
    )
    _check_connections(where, topology)
    return topology


def load(path: Path) -> Topology:
    """The topology in a YAML file."""
    import yaml

    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise TrebuchetError(f"cannot read the topology {path}: {error}; {_EXAMPLE}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "is no YAML"
        raise TrebuchetError(f"{path}{place}: {problem}; {_EXAMPLE}") from error
    except RecursionError as error:
        raise TrebuchetError(f"{path} must not be nested so deep") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # What Python says of a value that looks like a date, or has the tag of another type.
        raise TrebuchetError(f"{path} has a value that cannot be read: {error}") from error
    return parse(document, str(path))


def uniform(count: int) -> Topology:
    """``count`` boards with the addresses 192.0.2.2 and so on, perfect links of 1 Gb/s.

    Each may call all others, unless those are more than the peers that it is built for.
    """
    names = [f"board{k}" for k in range(count)]
    pairs = itertools.permutations(names, 2) if count <= PEERS + 1 else ()
    ltl = [{"from": source, "to": target} for source, target in pairs]
    return parse({"boards": [{"name": name} for name in names], "ltl": ltl})
