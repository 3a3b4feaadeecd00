"""Sums and copies by words, at every alignment and length, against the naive ones."""

import ctypes
import random

import pytest
from firmware_host import shared_library
from trebuchet.models.net import checksum

ROOM = 96
EDGE = 8  # bytes before and behind that must stay


@pytest.fixture(scope="module")
def packet(tmp_path_factory):
    return shared_library(tmp_path_factory.mktemp("packet"), ["packet"])


def summed(data, before):
    """The model's sum of ``before``, a number of 16 bits, and the data."""
    return 0xFFFF ^ checksum(before.to_bytes(2, "big") + data)


def aligned(size):
    """A buffer, and how far behind it an address lies that is a multiple of 8."""
    buffer = ctypes.create_string_buffer(size + 8)
    return buffer, -ctypes.addressof(buffer) % 8


@pytest.mark.parametrize("at", range(4))
def test_sum_at_every_alignment(packet, at):
    rng = random.Random(at)
    buffer, start = aligned(ROOM + 4)
    for length in range(ROOM):
        for data in (rng.randbytes(length), bytes(length), b"\xff" * length):
            ctypes.memset(buffer, 0xA5, len(buffer))  # what lies around does not count
            ctypes.memmove(ctypes.byref(buffer, start + at), data, length)
            for before in (0, 1, 0xFFFF, rng.getrandbits(16)):
                got = packet.packet_sum(
                    ctypes.byref(buffer, start + at), ctypes.c_size_t(length), before
                )
                assert got == summed(data, before), f"{length} bytes, {before:#x} before"


def test_sum_of_a_large_datagram(packet):
    """All carries that there can be."""
    for size in (2048, 65_535):
        data = b"\xff" * size
        assert packet.packet_sum(data, ctypes.c_size_t(size), 0xFFFF) == summed(data, 0xFFFF)


@pytest.mark.parametrize("to", range(4))
@pytest.mark.parametrize("source", range(4))
def test_copy_at_every_alignment(packet, source, to):
    rng = random.Random(4 * source + to)
    for length in range(ROOM):
        data = rng.randbytes(length)
        given, first = aligned(ROOM + 4)
        taken, second = aligned(ROOM + 4 + 2 * EDGE)
        ctypes.memmove(ctypes.byref(given, first + source), data, length)
        before = rng.randbytes(len(taken))
        ctypes.memmove(taken, before, len(taken))
        place = second + EDGE + to
        packet.packet_copy(
            ctypes.byref(taken, place), ctypes.byref(given, first + source), ctypes.c_size_t(length)
        )
        assert taken.raw == before[:place] + data + before[place + length :]
