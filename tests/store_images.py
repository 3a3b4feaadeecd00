"""Volumes for tests of firmware/store: made by mkfs.fat and mcopy, damaged by hand, listed in C."""

import os
import shutil
import struct
import subprocess

import pytest
from firmware_host import FIRMWARE, WARNINGS

NEEDED = ("mkfs.fat", "mcopy", "mdel")
needs_tools = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in NEEDED),
    reason="dosfstools and mtools are not installed (tools/bootstrap.py)",
)
OK, END, READ_ERROR, NO_VOLUME, DAMAGED, TOO_DEEP = range(6)


def compile_lister(folder):
    """``store_host.c`` with sanitizers; returns the program's path."""
    sources = [FIRMWARE.parent / "tests" / "store_host.c"]
    sources += [FIRMWARE / "store" / f"{name}.c" for name in ("fat", "fat_folder")]
    flags = [*WARNINGS, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    path = folder / "store_host"
    subprocess.run(["gcc", *flags, f"-I{FIRMWARE}", "-o", path, *sources], check=True)
    return path


def make_image(path, files, kib=4096, bits=16, cluster=1, options=()):
    """Make a volume at ``path`` of {name: content}; folders are made as needed."""
    path.unlink(missing_ok=True)
    command = ["mkfs.fat", "--invariant", "-F", str(bits), "-s", str(cluster), *options]
    subprocess.run([*command, "-C", path, str(kib)], check=True, capture_output=True)
    tree = path.parent / f"{path.name}.tree"
    shutil.rmtree(tree, ignore_errors=True)
    for name, content in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "MTOOLS_SKIP_CHECK": "1"}
    if files:
        command = ["mcopy", "-i", path, "-s", "-Q", *sorted(tree.iterdir()), "::/"]
        subprocess.run(command, check=True, env=environment)
    return path


def listed(lister, image, *bad):
    """(volume's fields, {path: (status, size, extents)}, [(status, folder)]) as the C code says."""
    command = [lister, image, *map(str, bad)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    volume, files, faults = None, {}, []
    for line in done.stdout.decode().splitlines():
        kind, *fields = line.split("\t")
        if kind == "volume":
            volume = tuple(map(int, fields))
        elif kind == "file":
            pairs = [tuple(map(int, e.split(":"))) for e in fields[2].split(",")[:-1]]
            files[fields[4]] = (int(fields[3]), int(fields[0]), pairs)
        else:
            faults.append((int(fields[0]), fields[1]))
    return volume, files, faults


def content(image, entry):
    """The bytes of a file by its extents."""
    _, size, extents = entry
    pieces = []
    with image.open("rb") as file:
        for lba, count in extents:
            file.seek(lba * 512)
            pieces.append(file.read(count * 512))
    return b"".join(pieces)[:size]


class Volume:
    """A FAT volume's bytes, to be damaged."""

    def __init__(self, image):
        self.data = bytearray(image.read_bytes())
        self.wide = struct.unpack_from("<H", self.data, 22)[0] == 0
        reserved, fats, entries = struct.unpack_from("<HBH", self.data, 14)
        size = struct.unpack_from("<I", self.data, 36)[0] if self.wide else self.u16(22)
        self.tables = [(reserved + i * size) * 512 for i in range(fats)]
        self.root = (reserved + fats * size) * 512  # of FAT32: that of cluster 2
        self.heap = self.root + entries * 32
        self.cluster = self.data[13] * 512

    def u16(self, at):
        return struct.unpack_from("<H", self.data, at)[0]

    def link(self, cluster, to, tables=None):
        """Set the FAT's entry of a cluster."""
        for table in self.tables if tables is None else tables:
            if self.wide:
                struct.pack_into("<I", self.data, table + 4 * cluster, to)
            else:
                struct.pack_into("<H", self.data, table + 2 * cluster, to)

    def entry(self, short_name):
        """Where the entry with this 11-byte name is."""
        at = self.data.index(short_name, self.root)
        while at % 32:
            at = self.data.index(short_name, at + 1)
        return at

    def first(self, short_name):
        """The first cluster of an entry."""
        return self.u16(self.entry(short_name) + 26)

    def at_cluster(self, number):
        return self.heap + (number - 2) * self.cluster

    def patches(self):
        """The volume as an input of the fuzz target ``fat``."""
        out = b""
        for lba in range(len(self.data) // 512):
            block = self.data[lba * 512 : lba * 512 + 512]
            at = 0
            while at < 512:
                end = at
                while end < 512 and any(block[end : end + 4]) and end - at < 252:
                    end += 4
                if end > at:
                    out += lba.to_bytes(3, "little") + bytes([at // 4, end - at])
                    out += block[at:end]
                at = max(end, at + 4)
        return out
