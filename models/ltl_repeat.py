"""Go-back-N against selective repeat: what share of the line each gets, by loss and round trip.

Time is counted in frames. A sender with an endless backlog sends a frame a slot within its window;
a frame, or an ACK on its way back, is lost by chance; the round trip is a number of slots. Both
ways of repeating have NACKs at once and a time-out; selective repeat remembers what came early.
"""

import random
from collections import deque

__all__ = ["share"]


def share(
    selective: bool, loss: float, trip: int, window: int, frames: int, seed: int = 1
) -> float:
    """Frames delivered for the first time per slot."""
    rng = random.Random(seed)
    una = following = expected = slot = 0
    early: set[int] = set()
    again: deque[int] = deque()
    nacked = ahead = -1
    arrivals: deque[tuple[int, int]] = deque()  # slot, number: at the receiver
    acks: deque[tuple[int, int, int]] = deque()  # slot, next expected, number to repeat or -1
    deadline = 3 * trip + window
    while expected < frames:
        while acks and acks[0][0] <= slot:
            _, acked, repeat = acks.popleft()
            if acked > una:
                una, deadline = acked, slot + 3 * trip + window
                following = max(following, una)
            if repeat >= una:
                if selective:
                    again.append(repeat)
                else:
                    following = repeat
        if slot >= deadline:
            deadline = slot + 3 * trip + window
            if selective:
                again.append(una)
            else:
                following = una
        while again and again[0] < una:
            again.popleft()
        number = -1
        if again:
            number = again.popleft()
        elif following < una + window:
            number, following = following, following + 1
        if number >= 0 and rng.random() >= loss:
            arrivals.append((slot + trip // 2, number))
        while arrivals and arrivals[0][0] <= slot:
            _, got = arrivals.popleft()
            repeat = -1
            if got == expected:
                expected += 1
                while expected in early:
                    early.remove(expected)
                    expected += 1
            elif got > expected:
                new = got not in early
                if selective:
                    early.add(got)
                if nacked != expected or (got <= ahead and (new or not selective)):
                    nacked, repeat = expected, expected
                ahead = got
            if rng.random() >= loss:
                acks.append((slot + trip - trip // 2, expected, repeat))
        slot += 1
    return expected / slot


def _table() -> None:
    print("loss   trip  window  go-back-N  selective repeat")
    for trip in (1, 6, 24):
        for loss in (0.001, 0.01, 0.05):
            window = max(8, 2 * trip)
            both = [share(s, loss, trip, window, 20_000) for s in (False, True)]
            print(f"{loss:5.1%}  {trip:4}  {window:6}  {both[0]:9.3f}  {both[1]:16.3f}")


if __name__ == "__main__":
    _table()
