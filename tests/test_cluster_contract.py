"""Sizes of a cluster's LTL engine, and what they promise."""

import pytest
from trebuchet.cores.cluster.contract import (
    CALLS,
    CHUNK,
    HEADER_BYTES,
    MAX_PEERS,
    REPLIES,
    WINDOW,
    entry,
    ltl_config,
)
from trebuchet.cores.ltl.registers import LTL_BLOCK


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("peers", range(1, MAX_PEERS + 1))
def test_every_peer_has_its_own_room(peers, width):
    """All windows can be full at the same time, at both ends (docs/network.md, LTL)."""
    config = ltl_config(width, peers)
    entries = {entry(p, vc) for p in range(1, peers + 1) for vc in (CALLS, REPLIES)}
    assert config.connections > max(entries)
    assert config.slots >= len(entries) * config.window
    credit = next(r.reset for r in LTL_BLOCK.registers if r.name == "credit")
    assert credit == WINDOW == config.window, "more would never be used"
    # All connections of one output, each with all its credit used by the longest messages.
    assert config.buffer_beats >= peers * credit * config.message_beats
    assert config.max_message == CHUNK + HEADER_BYTES
    assert CHUNK % 16 == 0, "offsets are in units of 16 bytes"


@pytest.mark.parametrize("width", [32, 64])
def test_messages_fill_the_slots_of_the_store(width):
    config = ltl_config(width, 1)
    slot = (1 << config.slot_bits) * width // 8
    assert config.max_message > 0.99 * slot, "block RAM that holds nothing"
