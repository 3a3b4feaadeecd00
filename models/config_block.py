"""The configuration block of a board as bytes.

The block is what the board keeps in flash (``firmware/config.h``): lines ``KEY=VALUE`` behind a
header of 16 bytes with a checksum. A flash holds two copies, a sector of 4 KiB apart; the one with
the later sequence number counts. Keys and values are checked here as the firmware checks them.
"""

import ipaddress
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .errors import TrebuchetError

__all__ = ["FORMS", "MAX_TEXT", "STEP", "ConfigBlock", "check_text", "cluster_texts", "pack"]
__all__ += ["unpack"]

_HEADER = struct.Struct("<4sBBHII")
_CHECKED = 12
_MAGIC = b"TBCF"
_FORMAT = 1
MAX_TEXT = 2032
#: Bytes from one copy to the other.
STEP = 4096
_MAX_PEERS = 15


def _number(text: str, low: int, high: int) -> bool:
    return re.fullmatch(r"0|[1-9][0-9]{0,8}", text) is not None and low <= int(text) <= high


def _ip(text: str) -> int | None:
    try:
        return int(ipaddress.IPv4Address(text))
    except ValueError:
        return None


def _is_host(text: str) -> bool:
    ip = _ip(text)
    return ip is not None and ip >> 24 not in (0, 127) and ip >> 24 < 224


def _is_mask(text: str) -> bool:
    mask = _ip(text)
    return bool(mask) and re.fullmatch("1+0*", f"{mask:032b}") is not None


def _is_mac(text: str) -> bool:
    if re.fullmatch(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", text) is None:
        return False
    mac = int(text.replace(":", ""), 16)
    return mac != 0 and not mac >> 40 & 1


def _is_server(text: str) -> bool:
    ip, colon, ports = text.partition(":")
    port, slash, own = ports.partition("/")
    good = bool(colon) and _is_host(ip) and _number(port, 1, 65535)
    return good and (not slash or _number(own, 1, 65535))


def _is_peer(text: str) -> bool:
    fields = text.split(",")
    return (
        len(fields) == 5
        and _is_mac(fields[0])
        and _is_host(fields[1])
        and _number(fields[2], 1, _MAX_PEERS)
        and _number(fields[3], 1, 32767)
        and fields[4] in ("0", "1")
    )


def _one_of(*choices: str) -> Callable[[str], bool]:
    return lambda text: text in choices


def _between(low: int, high: int) -> Callable[[str], bool]:
    return lambda text: _number(text, low, high)


def _is_watchdog(text: str) -> bool:
    return text == "0" or _number(text, 2000, 65_535)


def _is_name(text: str) -> bool:
    return len(text) <= 31 and re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", text) is not None


#: Times (ms) and limits of the TCP engine; no time is shorter than its wheel has slots.
_TCP = {
    "tcp_rto_min": (128, 60_000),
    "tcp_rto_initial": (128, 60_000),
    "tcp_syn_retries": (1, 15),
    "tcp_retries": (1, 15),
    "tcp_keepalive_retries": (1, 15),
    "tcp_keepalive_idle": (128, 4_194_303),
    "tcp_keepalive_interval": (128, 4_194_303),
    "tcp_user_timeout": (128, 4_194_303),
    "tcp_time_wait": (128, 4_194_303),
    "tcp_half_open_limit": (1, 131_071),
    "tcp_evict_idle": (0, 4_194_303),
    "tcp_request_timeout": (0, 4_194_303),
}
_PEER_FORM = "MAC,IP,THEIRS,TIMEOUT_US,0|1"

#: Form of the value of each key, and its check. Keep `firmware/config_keys.c` the same.
FORMS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "ip": ("A.B.C.D", _is_host),
    "mac": ("XX:XX:XX:XX:XX:XX of one station", _is_mac),
    "dhcp": ("0|1", _one_of("0", "1")),
    "netmask": ("A.B.C.D", _is_mask),
    "gateway": ("A.B.C.D", _is_host),
    "server": ("A.B.C.D:PORT[/OWN]", _is_server),
    "log": ("error|warn|info|debug", _one_of("error", "warn", "info", "debug")),
    "watchdog_ms": ("0|2000..65535", _is_watchdog),
    "role": ("on|off", _one_of("on", "off")),
    "guard": ("on|off", _one_of("on", "off")),
    "name": ("a host name of at most 31 lower-case letters, digits and -", _is_name),
    **{key: (f"{low}..{high}", _between(low, high)) for key, (low, high) in _TCP.items()},
    **{f"peer{n}": (_PEER_FORM, _is_peer) for n in range(1, _MAX_PEERS + 1)},
}


@dataclass(frozen=True)
class ConfigBlock:
    """The text of a block and its sequence number."""

    text: str
    sequence: int


def check_text(text: str) -> str:
    """The lines as a block has them; comments (``# …``) and empty lines are left out."""
    lines, seen = [], set()
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals or key not in FORMS:
            known = ", ".join(key for key in FORMS if not key.startswith("peer"))
            raise TrebuchetError(
                f"line {number} must be KEY=VALUE with one of the keys {known}, peer1 to "
                f"peer{_MAX_PEERS}, not {line!r}"
            )
        form, allows = FORMS[key]
        if not allows(value):
            raise TrebuchetError(f"line {number}: {key} must be {form}, not {value!r}")
        if key in seen:
            raise TrebuchetError(f"line {number}: {key} is there twice")
        seen.add(key)
        lines.append(f"{key}={value}\n")
    found = "".join(lines)
    if len(found) > MAX_TEXT:
        raise TrebuchetError(f"the settings must be at most {MAX_TEXT} bytes, not {len(found)}")
    return found


def cluster_texts(boards: Sequence[tuple[str, str]], timeout_us: int) -> list[str]:
    """The settings of each board of a cluster in which everybody does everybody's jobs.

    ``boards`` are MAC and IP addresses. Each board numbers the others in the order in which they
    are given, and tells each its own number there (docs/network.md, Peers). ``timeout_us``, 1 to
    32767, is how long a frame may remain without an answer.
    """
    boards = [(mac.lower(), ip) for mac, ip in boards]
    if not 2 <= len(boards) <= _MAX_PEERS + 1:
        raise TrebuchetError(f"a cluster must have 2 to {_MAX_PEERS + 1} boards, not {len(boards)}")
    for key, column in zip(("mac", "ip"), zip(*boards, strict=True), strict=True):
        form, allows = FORMS[key]
        for address in column:
            if not allows(address):
                raise TrebuchetError(f"{key} of a board must be {form}, not {address!r}")
            if column.count(address) > 1:
                raise TrebuchetError(
                    f"two boards must not have the same {key}, {address}; give each its own"
                )
    return [_board_of_cluster(boards, k, timeout_us) for k in range(len(boards))]


def _board_of_cluster(boards: Sequence[tuple[str, str]], own: int, timeout_us: int) -> str:
    mac, ip = boards[own]
    lines = [f"ip={ip}", f"mac={mac}"]
    others = [k for k in range(len(boards)) if k != own]
    for number, k in enumerate(others, 1):
        # A board leaves itself out of its count.
        theirs = own + 1 if own < k else own
        lines.append(f"peer{number}={boards[k][0]},{boards[k][1]},{theirs},{timeout_us},1")
    return check_text("\n".join(lines))


def pack(text: str, sequence: int = 1) -> bytes:
    """A block with the settings of ``text``."""
    data = check_text(text).encode("ascii")
    header = _HEADER.pack(_MAGIC, _FORMAT, 0, len(data), sequence & 0xFFFF_FFFF, 0)[:_CHECKED]
    return header + struct.pack("<I", zlib.crc32(header + data)) + data


def unpack(data: bytes) -> ConfigBlock:
    """The block at the start of ``data``, which may go on behind it."""
    if len(data) < _HEADER.size:
        raise TrebuchetError(f"a configuration block has {_HEADER.size} bytes or more: TRUNCATED")
    magic, form, zero, length, sequence, checksum = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise TrebuchetError("there is no configuration block here: NO_CONFIG")
    if form != _FORMAT or length > MAX_TEXT:
        raise TrebuchetError(f"format {form} of the configuration block is unknown: BAD_DATA")
    text = data[_HEADER.size : _HEADER.size + length]
    if len(text) < length:
        raise TrebuchetError(
            f"the block must have {length} bytes of settings, not {len(text)}: TRUNCATED"
        )
    if zlib.crc32(data[:_CHECKED] + text) != checksum:
        raise TrebuchetError("the settings do not fit their checksum: BAD_CHECKSUM")
    return ConfigBlock(text.decode("ascii", errors="backslashreplace"), sequence)
