"""Placed and routed gateware, used again for as long as the netlist is the same."""

import hashlib

from .floorplan import draw
from .netlist import kept_netlist, placed_from, synthesise
from .pins import check_pins
from .place import check_room, place, usage
from .reports import read_report, write_report
from .rom import PLACED

__all__ = ["place_unless_kept"]


def place_unless_kept(placement, board, seeds, fresh):
    """Placed and routed gateware with its floorplan, that of an earlier build if it is the same.

    Most changes are of firmware, which has no part in it (``rom.py``). Returns the seed, and
    whether it is an earlier build's.
    """
    path = placement.path("_placement.json")
    checked = fresh or kept_netlist(placement) is None
    if checked:
        check_pins(placement)
        synthesise(placement)
    inputs = [placed_from(placement), list(seeds)]
    found = {} if fresh else read_report(path)
    kept = found.get("inputs") == inputs and found.get("results") == _digests(placement)
    if kept:
        placement.reached.update(found["reached"])
        seed = found["seed"]
    else:
        path.unlink(missing_ok=True)
        if not checked:
            check_pins(placement)
        check_room(board, usage(placement, routed=False))
        seed = place(placement, seeds)
        found = {"seed": seed, "reached": placement.reached, "results": _digests(placement)}
        write_report(path, {"inputs": inputs, **found})
    title = f"{board.title}: {board.device}, seed {seed}"
    placement.path(".svg").write_text(draw(placement, board.device, title))
    return seed, kept


def _digests(placement):
    """SHA-256 of each file that place and route left; None of one that is gone."""
    paths = map(placement.path, (PLACED, "_pnr.json", "_placed.json"))
    return [
        hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None for path in paths
    ]
