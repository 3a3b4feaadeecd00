"""Compiled tops that the tests of the simulator share, and what they need of the machine."""

import functools
import os
from pathlib import Path

import pytest
from trebuchet.sim.build import Source, build
from trebuchet.sim.netns import Namespace, NamespaceError
from trebuchet.sim.tops import source

HERE = Path(__file__).parent


@functools.cache
def _missing_for_network():
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun cannot be opened here"
    try:
        Namespace().close()
    except NamespaceError as error:
        return str(error)
    return None


needs_network = pytest.mark.skipif(
    _missing_for_network() is not None, reason=f"no simulated network: {_missing_for_network()}"
)


def mirror(trace=False):
    return build(source("mirror"), trace=trace)


def loopback():
    """The board's port shape; every byte comes back (sim_loopback.v)."""
    return build(Source("board", "trebuchet_loopback", {}, (HERE / "sim_loopback.v",)))


def wire():
    """The load generator on a TAP device: the kernel is the device under test."""
    return build(Source("wire", "", {}))
