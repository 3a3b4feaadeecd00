"""Whether nextpnr's router will come to an end, by what it says of its rounds."""

import re

__all__ = ["PATIENCE", "no_end_in_sight"]

_ROUND = re.compile(r"\biter=\d+ wires=\d+ overused=(\d+) ")
#: Rounds that may pass without a better one. With one or two wires left it has been 40, and then
#: the end.
PATIENCE = 50


def no_end_in_sight(log):
    """Why the router, whose log so far is the text ``log``, should be ended; None: it should not.

    It goes on as long as there are wires that two nets want, which become fewer, with small steps
    back. Where they become more and more it has driven nets apart until they met elsewhere, and
    does not recover: an 85F had 293 after 55 rounds, 710 after 103 and 1,422 after 130.
    """
    rounds = [int(overused) for overused in _ROUND.findall(log)]
    if not rounds:
        return None
    best = min(rounds)
    since = rounds[::-1].index(best)
    if since < PATIENCE or rounds[-1] <= 2 * best + 100:
        return None
    return (
        f"of {best} wires that two nets wanted after {len(rounds) - since} rounds there are "
        f"{rounds[-1]} after {len(rounds)}; try another seed, or router='patient'"
    )
