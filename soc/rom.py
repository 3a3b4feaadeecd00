"""The ROM of an ECP5: placed and routed with a stand-in for the firmware, which is put in after.

What a ROM contains decides how Yosys names and merges things, so other firmware was placed and
routed to another clock: 75 MHz became 65. So the gateware knows only the size of its ROM, in whole
rows of block RAMs, and a stand-in for its contents, which is found in the finished configuration
bit by bit and replaced. Project Trellis's ``ecpbram`` works alike, but does not tell what it did
not find; and as a Python package it lacks its database.
"""

import hashlib
import re

import numpy as np

from ..models.errors import TrebuchetError

__all__ = ["PLACED", "ROW", "fill", "stand_in"]

#: What nextpnr wrote, and :func:`fill` makes ``.config`` from.
PLACED = "_placed.config"
#: Words of a row of block RAMs that are used with 9 bits.
ROW = 2048

#: Words in which one bit is told apart: those of a block RAM in its widest shape. A ROM of at most
#: a row, a boot ROM, is made of such.
_PIECE = 512
#: Shapes of a block RAM: bits of a word, and how many of each 9 in the configuration they lie in.
_SHAPES = ((1, 8), (2, 8), (4, 8), (9, 9), (18, 9), (36, 9))
_BLOCK_RAM = re.compile(r"^(?P<head>\.bram_init \d+\n)(?P<words>(?:[0-9a-f ]+\n)+)", re.MULTILINE)


def stand_in(words):
    """Contents for a ROM that is to have ``words`` words of 32 bits: whole rows of such words.

    Or whole pieces, if one row is enough.

    The same each time, and random, so that each bit of 512 words has a pattern that is nowhere
    else.
    """
    step = _PIECE if words <= ROW else ROW
    size = -(-words // step) * step
    octets = hashlib.shake_128(b"stand-in for the firmware").digest(4 * size)
    return [int.from_bytes(octets[at : at + 4], "big") for at in range(0, len(octets), 4)]


def fill(placement, firmware):
    """Make ``.config`` of what was placed and routed, with ``firmware`` in its ROM.

    Parameters
    ----------
    placement : Placement
        A finished one, of gateware whose ROM has the :func:`stand_in` for so many words.
    firmware : sequence of int
        Words of 32 bits; empty if there is no ROM.
    """
    config = placement.path(PLACED).read_text()
    if firmware:
        old = stand_in(len(firmware))
        new = [*firmware, *[0] * (len(old) - len(firmware))]
        contents = _contents(config)
        missing = _replace(contents, dict(zip(_pieces(old), _pieces(new), strict=True)))
        if missing:
            raise TrebuchetError(
                f"of {len(old)} words that stand for the firmware, {missing} of {len(old) // 16} "
                f"pieces are not once in the block RAMs of {placement.path(PLACED)}; is the ROM "
                "somewhere else?"
            )
        config = _with_contents(config, contents)
    placement.path(".config").write_text(config)


def _pieces(words):
    """Each bit of each 512 words, as bytes that have a pattern of their own."""
    bits = np.unpackbits(np.array(words, ">u4").view(np.uint8)).reshape(-1, _PIECE, 32)
    packed = np.packbits(bits.swapaxes(1, 2), axis=-1)
    return [piece.tobytes() for piece in packed.reshape(-1, _PIECE // 8)]


def _contents(config):
    """Bits of all block RAMs of a configuration: of each 2,048 times 9."""
    found = [ram["words"].split() for ram in _BLOCK_RAM.finditer(config)]
    words = np.array([[int(word, 16) for word in ram] for ram in found], np.uint16)
    return (words.reshape(-1, ROW, 1) >> np.arange(9, dtype=np.uint16) & 1).astype(np.uint8)


def _with_contents(config, contents):
    words = iter((contents.astype(np.uint16) << np.arange(9, dtype=np.uint16)).sum(axis=-1))

    def replaced(ram):
        lines = (" ".join(f"{word:03x}" for word in line) for line in next(words).reshape(-1, 8))
        return ram["head"] + "".join(f"{line}\n" for line in lines)

    return _BLOCK_RAM.sub(replaced, config)


def _replace(contents, pieces):
    """Put new pieces where the old ones are; how many of these are in no place, or in several."""
    places = dict.fromkeys(pieces, 0)
    flat, here = contents.reshape(-1), np.arange(contents.size).reshape(contents.shape)
    for width, used in _SHAPES:
        at = here[:, :, :used].reshape(-1, _PIECE, width).swapaxes(1, 2).reshape(-1, _PIECE)
        for bits, found in zip(at, np.packbits(flat[at], axis=-1), strict=True):
            piece = found.tobytes()
            if piece in pieces:
                flat[bits] = np.unpackbits(np.frombuffer(pieces[piece], np.uint8))
                places[piece] += 1
    return sum(count != 1 for count in places.values())
