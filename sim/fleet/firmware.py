"""Firmware for one board of several: the same but for its addresses and its peers.

The board's MAC and IP addresses and those of its peers, and whether it uses DHCP, are constants of
its firmware; the gateware is the same for all. So the firmware of the simulated board is compiled
again with another ``soc.h`` and ``trebuchet_peers.h``, in a folder beside the first build, whose
libraries it uses, and becomes the ROM image.
"""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from ...models.errors import TrebuchetError
from ...models.kept import kept
from ...soc.build import SimFiles
from ...soc.firmware import FIRMWARE_DIR
from ...soc.peers import peers_header
from .topology import BoardSpec, Topology

__all__ = ["board_folder", "peers_text", "variant_folder"]


def _words(image: bytes) -> list[int]:
    image += bytes(-len(image) % 4)
    return [int.from_bytes(image[at : at + 4], "little") for at in range(0, len(image), 4)]


def _init_words(path: Path) -> list[int]:
    return [int(word, 16) for word in path.read_text().split()]


def _find_rom(files: SimFiles, image: bytes) -> Path:
    """The memory image that holds the firmware."""
    words = _words(image)
    for path in files.memories:
        if _init_words(path)[: len(words)] == words:
            return path
    raise TrebuchetError(f"no memory in {files.folder} holds the firmware; remove it and try again")


def _replace(text: str, name: str, value: int) -> str:
    """``#define NAME value`` in the place of the one in ``text``."""
    text, found = re.subn(rf"(?m)^(#define {name}) .*$", rf"\g<1> {value}", text)
    if found != 1:
        raise TrebuchetError(f"the generated soc.h must define {name} once, not {found} times")
    return text


def _compile(base: Path, folder: Path, constants: dict[str, int], peers: str | None) -> bytes:
    """Firmware with these constants and peers, built in ``folder`` from the build in ``base``."""
    software = folder / "software"
    (software / "bios").mkdir(parents=True)
    old, new = base / "software" / "include", software / "include"
    shutil.copytree(old, new)
    for entry in (base / "software").iterdir():
        if entry.name not in ("bios", "include"):
            (software / entry.name).symlink_to(entry)
    variables = new / "generated" / "variables.mak"
    variables.write_text(variables.read_text().replace(str(old), str(new)))
    header = new / "generated" / "soc.h"
    text = header.read_text()
    for name, value in constants.items():
        text = _replace(text, name, value)
    header.write_text(text)
    if peers is not None:
        (new / "generated" / "trebuchet_peers.h").write_text(peers)
    log = folder / "make.log"
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS")}
    with log.open("w") as out:
        code = subprocess.run(
            ["make", "-C", software / "bios", "-f", FIRMWARE_DIR / "Makefile", "bios.bin"],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            check=False,
        ).returncode
    if code:
        raise TrebuchetError(f"compiling the firmware of one board of several failed; see {log}")
    return (software / "bios" / "bios.bin").read_bytes()


def peers_text(topology: Topology, board: BoardSpec) -> str:
    """``trebuchet_peers.h`` of a board; a cycle is as long as the topology says."""
    return peers_header(topology.peers(board.name), topology.clock_mhz, topology.dscp(board.name))


def _addresses(board: BoardSpec) -> dict[str, int]:
    """The constants that say which board it is."""
    return {
        "TREBUCHET_IP": board.ip_int,
        "TREBUCHET_MAC_HIGH": board.mac_int >> 32,
        "TREBUCHET_MAC_LOW": board.mac_int & 0xFFFF_FFFF,
    }


def _key(image: bytes, constants: dict[str, int], peers: str | None) -> str:
    """What the firmware of a board is made from.

    Its sources, too: ``image``, the firmware of a board without peers, lacks what they need.
    """
    digest = hashlib.sha256(image)
    for path in sorted(p for p in FIRMWARE_DIR.iterdir() if p.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update(repr((sorted(constants.items()), peers)).encode())
    return digest.hexdigest()[:16]


def board_folder(files: SimFiles, topology: Topology, board: BoardSpec) -> Path:
    """A folder with the memory images of a board of ``topology``.

    Made once for each set of addresses and peers.
    """
    return variant_folder(files, _addresses(board), peers_text(topology, board))


def variant_folder(files: SimFiles, constants: dict[str, int], peers: str | None = None) -> Path:
    """A folder with the memory images of a board that differs only in constants of its firmware.

    ``constants``: values of macros of the generated ``soc.h``, by name.
    """
    base = files.folder.parent
    first = (base / "software" / "bios" / "bios.bin").read_bytes()
    rom = _find_rom(files, first)

    def make(folder: Path) -> None:
        # It fits the ROM, which the simulated board has as large as the linker takes it to be.
        words = _words(_compile(base, folder / "build", constants, peers))
        for path in files.memories:
            if path != rom:
                shutil.copy(path, folder / path.name)
        (folder / rom.name).write_text("".join(f"{word:08x}\n" for word in words))

    return kept(base / "fleet" / _key(first, constants, peers), make)
