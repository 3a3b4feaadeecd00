"""Colorlight i9 v7.2 between a host and its switch; see :mod:`.colorlight_i9`.

The first Ethernet port goes to the network, the second to the host (docs/network.md, Bridge).
"""

from . import colorlight_i9

BOARD = colorlight_i9.BOARD.variant(
    name="colorlight_i9_bridge",
    title="Colorlight i9 7.2, bridge",
    bridge=True,
    frame_store=2048,  # there is no block RAM left for more, nor for the firmware that wants it
    seed=2,
)
