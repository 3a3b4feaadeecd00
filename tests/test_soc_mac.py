"""The MAC in Migen's simulator: frames from the shell to the PHY's bytes, and back again."""

import random
import zlib

import pytest
from liteeth.common import eth_phy_description
from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import ClockDomain, passive, run_simulation
from trebuchet.soc.ethernet import EthernetMac

PREAMBLE = b"\x55" * 7 + b"\xd5"
#: Nanoseconds of a cycle. The shell has 40 MHz and a word a cycle, the line 125 MHz and a byte.
CLOCKS = {"sys": 24, "eth_tx": 8, "eth_rx": 8}
#: Likewise, of a MAC in domains of other names.
HOST_CLOCKS = {"sys": 24, "host_eth_tx": 8, "host_eth_rx": 8}


class _Phy(LiteXModule):
    dw = 8

    def __init__(self):
        self.sink = stream.Endpoint(eth_phy_description(8))
        self.source = stream.Endpoint(eth_phy_description(8))
        self.comb += self.sink.ready.eq(1)


class _Top(LiteXModule):
    def __init__(self, width, clocks=CLOCKS, **options):
        for name in clocks:
            self.clock_domains += ClockDomain(name, reset_less=True)
        self.phy = _Phy()
        self.mac = EthernetMac(self.phy, width, **options)


def _send(endpoint, frames, width, rng, pauses=0.2):
    """Frames into the MAC, with pauses; it takes a whole frame before the line has it."""
    step = width // 8
    for frame in frames:
        for at in range(0, len(frame), step):
            word = frame[at : at + step]
            while rng.random() < (pauses if at else 0.2):
                yield
            yield endpoint.valid.eq(1)
            yield endpoint.data.eq(int.from_bytes(word, "little"))
            yield endpoint.last.eq(at + step >= len(frame))
            yield endpoint.last_be.eq(1 << len(word) - 1 if at + step >= len(frame) else 0)
            yield
            while not (yield endpoint.ready):
                yield
            yield endpoint.valid.eq(0)


@passive
def _line(phy, seen):
    """What is on the line, in runs of bytes without a pause; it all comes back."""
    run = b""
    while True:
        valid, data = (yield phy.sink.valid), (yield phy.sink.data)
        last = yield phy.sink.last
        if valid:
            run += bytes([data])
        elif run:
            seen.append(run)
            run = b""
        yield phy.source.valid.eq(valid)
        yield phy.source.data.eq(data)
        yield phy.source.last.eq(last)
        yield


def _receive(endpoint, count, cycles):
    """``(frame, error)`` of so many frames that come out of the MAC."""
    found, frame = [], b""
    yield endpoint.ready.eq(1)
    for _ in range(cycles):
        yield
        if not (yield endpoint.valid):
            continue
        word = (yield endpoint.data).to_bytes(len(endpoint.data) // 8, "little")
        if not (yield endpoint.last):
            frame += word
        else:
            frame += word[: (yield endpoint.last_be).bit_length()]
            found.append((frame, (yield endpoint.error)))
            frame = b""
        if len(found) == count:
            return found
    raise AssertionError(f"{len(found)} of {count} frames after {cycles} cycles")


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly)])
def test_frames_to_the_line_and_back(width):
    _there_and_back(_Top(width), width, CLOCKS, 0.2)


@pytest.mark.parametrize("width", [64, pytest.param(32, marks=pytest.mark.nightly)])
def test_without_stores_whole_frames_leave_without_a_pause(width):
    """Those of a bridge, which stores them; in the clock domains of the host's port."""
    options = {"stores": False, "rx": "host_eth_rx", "tx": "host_eth_tx"}
    _there_and_back(_Top(width, HOST_CLOCKS, **options), width, HOST_CLOCKS, 0)


def _there_and_back(top, width, clocks, pauses):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    lengths = [14, 61, rng.randint(60, 160)]
    frames = [rng.randbytes(length) for length in lengths]
    padded = [frame.ljust(60, b"\0") for frame in frames]
    seen, got = [], []

    def receive():
        got.extend((yield from _receive(top.mac.source, len(frames), 3_000)))

    line = next(name for name in clocks if name.endswith("eth_tx"))
    run_simulation(
        top,
        {
            "sys": [_send(top.mac.sink, frames, width, random.Random(seed), pauses), receive()],
            line: [_line(top.phy, seen)],
        },
        clocks=clocks,
    )
    expected = [PREAMBLE + f + zlib.crc32(f).to_bytes(4, "little") for f in padded]
    assert seen[: len(frames)] == expected  # each in one run: the line cannot wait
    assert [(frame[: len(f)], error) for (frame, error), f in zip(got, padded, strict=True)] == [
        (f, 0) for f in padded
    ]
