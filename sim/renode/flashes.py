"""Files with the contents of emulated boards' flashes."""

from pathlib import Path

from ...models import config_block
from ...models.errors import TrebuchetError
from ...models.files import writing_to
from .platform import Build

__all__ = ["board_flashes", "suite_flashes"]

#: The header of an image lies in the last sector of its slot (firmware/image.c).
_SECTOR = 4096


def _write(path: Path, size: int, parts: dict[int, bytes]) -> None:
    """An erased flash of ``size`` bytes but for ``parts``, by address."""
    contents = bytearray(b"\xff" * size)
    for at, part in parts.items():
        contents[at : at + len(part)] = part
    with writing_to(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)


def board_flashes(build: Build, boards: int, flash: Path | None, folder: Path) -> list[Path | None]:
    """The flash file of each board; None: an erased one that is forgotten.

    One board has ``flash``. Several have a file each, ``flash`` or ``BOARD.flash`` with the board's
    number behind it. One that is missing is made, with addresses for its board: those of the build
    plus its number.
    """
    if flash is not None and not flash.resolve().parent.is_dir():
        raise TrebuchetError(f"--flash {flash}: there is no folder {flash.resolve().parent}")
    if boards == 1:
        return [flash]
    size = build.constants.get("trebuchet_flash_size")
    if size is None:
        raise TrebuchetError(
            f"board {build.board!r} has no flash, which would hold the addresses of several boards"
        )
    path = flash or folder / f"{build.board}.flash"
    paths: list[Path | None] = []
    for number in range(boards):
        own = path.with_name(f"{path.name}{number}")
        if flash is None or not own.exists():
            settings = config_block.pack(_addresses(build, number))
            _write(own, size, {build.constants["trebuchet_flash_config"]: settings})
        paths.append(own)
    return paths


def _addresses(build: Build, number: int) -> str:
    """Settings that make a board another one: the build's addresses plus its number."""
    constants = build.constants
    mac = (constants["trebuchet_mac_high"] << 32 | constants["trebuchet_mac_low"]) + number
    ip = constants["trebuchet_ip"] + number
    octets = ":".join(f"{octet:02x}" for octet in mac.to_bytes(6, "big"))
    return f"mac={octets}\nip={'.'.join(map(str, ip.to_bytes(4, 'big')))}\n"


def suite_flashes(build: Build, folder: Path) -> dict[str, Path]:
    """Flashes that the suites need, by name; none for a board without one.

    ``bad_image``: the application slot holds a damaged image; ``dhcp``: the configuration has
    DHCP on.
    """
    size = build.constants.get("trebuchet_flash_size")
    if size is None:
        return {}
    slot = build.constants["trebuchet_flash_firmware"]
    header = slot + build.constants["trebuchet_flash_firmware_bytes"] - _SECTOR
    parts = {
        "bad_image": (header, b"TBIM" + bytes(range(60))),
        "dhcp": (build.constants["trebuchet_flash_config"], config_block.pack("dhcp=1\n", 1)),
    }
    paths = {name: folder / f"{name}.flash" for name in parts}
    for name, (at, part) in parts.items():
        _write(paths[name], size, {at: part})
    return paths
