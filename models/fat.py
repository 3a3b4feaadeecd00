"""A FAT16 or FAT32 volume with the files of a folder: the same folder gives the same bytes.

Each file and each folder lies in one piece, folders first, in the order of their names. Names that
are not plain ``8.3`` in capitals have long names, so that none depends on a code page. Times are
the format's first day, 1 January 1980; the volume's serial number is the CRC-32 of all paths and
contents instead. The volume begins at block 0, without a partition table.

Source: Microsoft FAT Specification, 30 August 2005.
"""

import os
import re
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from .errors import TrebuchetError

__all__ = ["BLOCK", "MIB", "Geometry", "Node", "geometry", "make_volume", "survey"]

BLOCK, MIB = 512, 1 << 20
_SLOT = 32
#: Fewer clusters would be FAT12, more than the second are FAT32 (specification, 3.5).
_FAT16_CLUSTERS, _FAT32_CLUSTERS = 4085, 65525
#: Distance from these limits that drivers which count differently need (same section).
_MARGIN = 16
_RESERVED = {16: 1, 32: 32}
_TABLES = 2
_ROOT_SLOTS = 512
#: Slots of a folder; also what firmware/store/fat.h reads, like the next two.
_FOLDER_SLOTS = 65536
_DEPTH, _PATH_BYTES = 16, 1023
_LONG_UNITS, _SLOT_UNITS = 255, 13
_FOLDER, _ARCHIVE, _LONG = 0x10, 0x20, 0x0F
_FIRST_DAY = 1 << 5 | 1
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f"*/:<>?\\|]')
_PLAIN = re.compile(r"[A-Z0-9!#$%&'()\-@^_`{}~]{1,8}(\.[A-Z0-9!#$%&'()\-@^_`{}~]{1,3})?")


@dataclass
class Node:
    """A file or a folder that goes onto the volume.

    Attributes
    ----------
    path : Path
        Where it is now.
    name : str
        Its name in its folder; empty: the root.
    size : int
        Bytes of a file; 0 for a folder.
    children : dict of str to Node, or None
        What a folder has, by name in order; None: this is a file.
    """

    path: Path
    name: str = ""
    size: int = 0
    children: "dict[str, Node] | None" = None
    cluster: int = field(default=0, compare=False)

    def walk(self):
        """This node and all below it."""
        yield self
        for child in (self.children or {}).values():
            yield from child.walk()

    def slots(self):
        """Slots of 32 bytes that the entries of this folder take."""
        names = sum(1 + _long_slots(name) for name in self.children or {})
        return names + (2 if self.name else 0)

    def bytes(self):
        """Bytes of its content on the volume."""
        return self.size if self.children is None else self.slots() * _SLOT


def _units(name):
    return name.encode("utf-16-le")


def _long_slots(name):
    return 0 if _PLAIN.fullmatch(name) else -(-len(_units(name)) // (2 * _SLOT_UNITS))


def _check_name(path, name):
    try:
        units = len(_units(name)) // 2
    except UnicodeEncodeError:
        raise TrebuchetError(f"{path!s:.300}: a name must be UTF-8; rename it") from None
    if found := _FORBIDDEN.search(name):
        raise TrebuchetError(f"{path}: FAT allows no {found[0]!r} in a name; rename it")
    if name[-1] in " .":
        raise TrebuchetError(f"{path}: FAT allows no {name[-1]!r} at the end of a name; rename it")
    if units > _LONG_UNITS:
        raise TrebuchetError(
            f"{path}: a name must have at most {_LONG_UNITS} characters, not {units}; shorten it"
        )


def _folded(name):
    """The name as FAT compares it: one character for each, without case."""
    return "".join(c.upper() if len(c.upper()) == 1 else c for c in name)


def survey(folder):
    """The :class:`Node` of a folder. Links to files are followed, those to folders are not.

    Raises
    ------
    TrebuchetError
        It is no folder; something in it cannot be read, is neither file nor folder, or does not
        fit the format or what boards read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise TrebuchetError(f"{folder} is no folder; name one whose files the card shall have")
    try:
        return _survey(folder, "", 0, 0)
    except OSError as error:
        raise TrebuchetError(f"cannot read {error.filename}: {error.strerror}") from error


def _survey(folder, name, depth, length):
    children: dict[str, Node] = {}
    node = Node(folder, name, children=children)
    seen: dict[str, str] = {}
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        path = folder / entry.name
        _check_name(path, entry.name)
        other = seen.setdefault(_folded(entry.name), entry.name)
        if other != entry.name:
            raise TrebuchetError(f"{path}: FAT ignores case, and {other} is there; rename one")
        below = length + 1 + len(entry.name.encode())
        if below > _PATH_BYTES:
            raise TrebuchetError(f"{path}: a path must have at most {_PATH_BYTES} bytes")
        if entry.is_dir(follow_symlinks=False):
            if depth == _DEPTH:
                raise TrebuchetError(f"{path}: boards read at most {_DEPTH} levels of folders")
            children[entry.name] = _survey(path, entry.name, depth + 1, below)
        elif entry.is_file():
            size = entry.stat().st_size
            if size >= 1 << 32:
                raise TrebuchetError(f"{path}: a file must have less than 4 GiB, not {size} bytes")
            children[entry.name] = Node(path, entry.name, size)
        elif not entry.is_dir():
            entry.stat()  # a link to nothing raises
            raise TrebuchetError(f"{path} is neither a file nor a folder; remove it")
    if node.slots() > _FOLDER_SLOTS:
        raise TrebuchetError(f"{folder} has too many files for one folder of FAT; divide it")
    return node


class Geometry(NamedTuple):
    """Where the parts of a volume are, in blocks."""

    bits: int
    blocks: int
    #: Blocks of a cluster.
    cluster: int
    root_slots: int
    table_blocks: int
    clusters: int

    @property
    def root(self):
        """The root folder of FAT16; without one, the first cluster."""
        return _RESERVED[self.bits] + _TABLES * self.table_blocks

    @property
    def heap(self):
        """The first cluster, whose number is 2."""
        return self.root + self.root_slots * _SLOT // BLOCK

    @property
    def cluster_bytes(self):
        return self.cluster * BLOCK


def _geometry(bits, blocks, cluster, root_slots):
    """The volume with these parameters, or None if that is no volume of this type."""
    rest = blocks - _RESERVED[bits] - root_slots * _SLOT // BLOCK
    # The smallest table with an entry for each of the clusters that it leaves, and two more.
    each = BLOCK * 8 // bits
    table = -(-(rest + 2 * cluster) // (cluster * each + _TABLES))
    clusters = (rest - _TABLES * table) // cluster
    low, high = (_FAT16_CLUSTERS, _FAT32_CLUSTERS) if bits == 16 else (_FAT32_CLUSTERS, 1 << 28)
    if not low + _MARGIN <= clusters < high - _MARGIN:
        return None
    return Geometry(bits, blocks, cluster, root_slots, table, clusters)


def geometry(tree, size=None, bits=None):
    """Choose type, size and clusters for a tree.

    Parameters
    ----------
    tree : Node
    size : int or None
        Bytes of the volume, a multiple of 1 MiB; None: as few as hold the tree.
    bits : int or None
        16 or 32; None: FAT16 below 512 MiB, if it can be.

    Raises
    ------
    TrebuchetError
        The tree does not fit, or there is no such volume.
    """
    types = (bits,) if bits else (16, 32)
    need = sum(node.size for node in tree.walk())
    if size is not None:
        found = _of_size(tree, size, types)
        if found is None:
            least = geometry(tree, None, bits).blocks * BLOCK // MIB
            raise TrebuchetError(
                f"{tree.path} has {need} bytes and needs a card of {least} MiB, not {size // MIB}: "
                f"give --size {least}, or leave it out"
            )
        return found
    # Every cluster size has its own waste: double until it fits, then halve the distance.
    high = max(4, -(-need // MIB))
    while (found := _of_size(tree, high * MIB, types)) is None:
        if high > 1 << 21:
            raise TrebuchetError(f"{tree.path} has {need} bytes, too many for a FAT volume")
        high += high // 2
    low = max(3, need // MIB - 1)
    while high - low > 1:
        middle = (low + high) // 2
        smaller = _of_size(tree, middle * MIB, types)
        low, high, found = (low, middle, smaller) if smaller else (middle, high, found)
    return found


def _of_size(tree, size, types):
    """The volume of ``size`` bytes that holds the tree, with the smallest clusters; or None."""
    wide_first = size >= 512 * MIB
    for bits in sorted(types, reverse=wide_first):
        root_slots = 0
        if bits == 16:
            root_slots = max(_ROOT_SLOTS, -(-tree.slots() // 16) * 16)
            if root_slots > 65520:
                continue
        for power in range(3 if wide_first and bits == 32 else 0, 7):
            found = _geometry(bits, size // BLOCK, 1 << power, root_slots)
            if found and _needed(tree, found) <= found.clusters:
                return found
    return None


def _extent(node, form):
    """Clusters of a node."""
    if node.children is None:
        return -(-node.size // form.cluster_bytes)
    if not node.name and form.bits == 16:
        return 0
    return max(1, -(-node.bytes() // form.cluster_bytes))


def _needed(tree, form):
    return sum(_extent(node, form) for node in tree.walk())


class _ShortNames:
    """The ``8.3`` names of a folder: each of its entries has one of its own."""

    def __init__(self, names):
        self._used = {name for name in names if _PLAIN.fullmatch(name)}
        self._last: dict[tuple[str, str], int] = {}

    def of(self, name):
        """11 characters; a number after ``~`` if the name is not such a name itself."""
        if name in self._used:
            base, _, end = name.partition(".")
            return (base.ljust(8) + end.ljust(3)).encode()
        stem, dot, end = name.rpartition(".")
        base = self._plain(stem if dot and stem.strip(".") else name) or "_"
        end = self._plain(end)[:3] if dot and stem.strip(".") else ""
        number = self._last.get((base[:2], end), 0)
        while True:
            number += 1
            tail = f"~{number}"
            made = base[: 8 - len(tail)] + tail
            if (f"{made}.{end}" if end else made) not in self._used:
                break
        self._last[base[:2], end] = number
        self._used.add(f"{made}.{end}" if end else made)
        return (made.ljust(8) + end.ljust(3)).encode()

    @staticmethod
    def _plain(text):
        text = re.sub(r"[ .]", "", text.upper())
        return re.sub(r"[^A-Z0-9!#$%&'()\-@^_`{}~]", "_", text)


def _entry(short, attributes, cluster, size=0):
    date = _FIRST_DAY
    high, low = cluster >> 16, cluster & 0xFFFF
    return struct.pack(
        "<11sBBBHHHHHHHI", short, attributes, 0, 0, 0, date, date, high, 0, date, low, size
    )


def _long_entries(name, short):
    """The slots before an entry that have its long name, the last part first (section 7)."""
    checksum = 0
    for octet in short:
        checksum = ((checksum << 7 | checksum >> 1) + octet) & 0xFF
    count = _long_slots(name)
    units = _units(name)
    if len(units) < count * 2 * _SLOT_UNITS:
        units = (units + b"\0\0").ljust(count * 2 * _SLOT_UNITS, b"\xff")
    slots = []
    for k in range(count):
        part = units[k * 2 * _SLOT_UNITS :]
        number = k + 1 | (0x40 if k + 1 == count else 0)
        slots.append(
            struct.pack("<B10sBBB", number, part[:10], _LONG, 0, checksum)
            + struct.pack("<12sH4s", part[10:22], 0, part[22:26])
        )
    return b"".join(reversed(slots))


def _folder_bytes(node, parent):
    """A folder's entries; ``parent``: the cluster that ``..`` states, None in the root."""
    entries = []
    if parent is not None:
        entries += [_entry(b".".ljust(11), _FOLDER, node.cluster)]
        entries += [_entry(b"..".ljust(11), _FOLDER, parent)]
    short_names = _ShortNames(node.children)
    for name, child in node.children.items():
        short = short_names.of(name)
        entries.append(_long_entries(name, short))
        attributes = _ARCHIVE if child.children is None else _FOLDER
        entries.append(_entry(short, attributes, child.cluster, child.size))
    return b"".join(entries)


def _boot(form, root_cluster, serial):
    """The first block (section 3)."""
    narrow = form.blocks if form.blocks < 1 << 16 and form.bits == 16 else 0
    table = form.table_blocks if form.bits == 16 else 0
    block = struct.pack(
        "<3s8sHBHBHHBHHHII",
        b"\xeb\x3c\x90" if form.bits == 16 else b"\xeb\x58\x90",
        b"MSWIN4.1",  # the name that all drivers accept
        BLOCK,
        form.cluster,
        _RESERVED[form.bits],
        _TABLES,
        form.root_slots,
        narrow,
        0xF8,
        table,
        63,
        255,
        0,
        0 if narrow else form.blocks,
    )
    if form.bits == 32:
        block += struct.pack("<IHHIHH12x", form.table_blocks, 0, 0, root_cluster, 1, 6)
    kind = b"FAT16   " if form.bits == 16 else b"FAT32   "
    block += struct.pack("<BBBI11s8s", 0x80, 0, 0x29, serial, b"NO NAME    ", kind)
    return block.ljust(510, b"\0") + b"\x55\xaa"


def _info(free, following):
    """FSInfo of FAT32 (section 5)."""
    return struct.pack("<I480xIII12xI", 0x41615252, 0x61417272, free, following, 0xAA550000)


def _table(extents, form):
    """The FAT: each node's clusters follow one another."""
    end = 0xFFFF if form.bits == 16 else 0x0FFFFFFF
    entries = [end & ~7, end]
    for count in extents:
        first = len(entries)
        entries += range(first + 1, first + count)
        entries += [end] if count else []
    return struct.pack(f"<{len(entries)}{'H' if form.bits == 16 else 'I'}", *entries)


def _copy(node, target: BinaryIO, checksum):
    """Append a file's content; return the checksum with it."""
    left = node.size
    try:
        with node.path.open("rb") as source:
            while part := source.read(MIB):
                left -= len(part)
                if left < 0:
                    break
                checksum = zlib.crc32(part, checksum)
                target.write(part)
    except OSError as error:
        raise TrebuchetError(f"cannot read {node.path}: {error.strerror}") from error
    if left:
        raise TrebuchetError(f"{node.path} changed while it was copied; run this again")
    return checksum


def make_volume(target: BinaryIO, tree, form):
    """Write the volume into ``target``, an empty file that can seek.

    Raises
    ------
    TrebuchetError
        A file cannot be read, or is not as it was at the survey.
    OSError
        ``target`` cannot be written.
    """
    nodes = list(tree.walk())
    nodes.sort(key=lambda node: node.children is None)  # stable: folders first
    extents, following = [_extent(node, form) for node in nodes], 2
    for node, count in zip(nodes, extents, strict=True):
        node.cluster = following if count else 0
        following += count
    target.truncate(form.blocks * BLOCK)
    parents = {id(c): n for n in nodes for c in (n.children or {}).values()}
    checksum = 0
    for node in nodes:
        place = form.heap + (node.cluster - 2) * form.cluster if node.cluster else form.root
        target.seek(place * BLOCK)
        names, at = [], node
        while at.name:
            names.append(at.name)
            at = parents[id(at)]
        checksum = zlib.crc32("/".join(reversed(names)).encode() + b"\0", checksum)
        if node.children is None:
            checksum = _copy(node, target, checksum)
            continue
        parent = parents.get(id(node))
        above = None if parent is None else parent.cluster if parent.name else 0
        target.write(_folder_bytes(node, above))
    table = _table(extents, form)
    for k in range(_TABLES):
        target.seek((_RESERVED[form.bits] + k * form.table_blocks) * BLOCK)
        target.write(table)
    boot = _boot(form, tree.cluster, checksum)
    target.seek(0)
    target.write(boot)
    if form.bits == 32:
        info = _info(form.clusters + 2 - following, following)
        target.write(info)
        target.seek(6 * BLOCK)
        target.write(boot + info)
