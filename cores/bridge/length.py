"""Frame lengths in beats, so that circuits compare and never add."""

from ..stream import check_data_width

__all__ = ["LONGEST", "SHORTEST", "FrameBounds"]

#: Bytes of a legal frame without its FCS (IEEE 802.3, 3.2.7; the longest has a VLAN tag, 802.1Q).
SHORTEST, LONGEST = 60, 1518


class FrameBounds:
    """The shortest and longest legal frame, told beat by beat.

    Parameters
    ----------
    width : int
        Data path in bits.
    shortest, longest : int
        Bytes of a legal frame, both inclusive.

    Attributes: ``beats``, of the longest frame.
    """

    def __init__(self, width, shortest=SHORTEST, longest=LONGEST):
        self.n = check_data_width(width) // 8
        if not isinstance(shortest, int) or shortest < 1:
            raise ValueError(f"Shortest frame must be an integer of at least 1, not {shortest!r}")
        if not isinstance(longest, int) or longest < max(shortest, self.n + 1):
            raise ValueError(
                f"Longest frame must be an integer of at least {max(shortest, self.n + 1)} bytes, "
                f"not {longest!r}"
            )
        self.shortest, self.longest = shortest, longest
        self.beats = self._border(longest)[0] + 1

    def _border(self, size):
        """Beats before the last one of a frame of ``size`` bytes, and unused bytes in it."""
        before = (size - 1) // self.n
        return before, (before + 1) * self.n - size

    def short(self, before, beat):
        """``beat`` ends a frame that is too short; ``before`` beats came before it."""
        beats, empty = self._border(self.shortest)
        return beat.last & ((before < beats) | ((before == beats) & (beat.empty > empty)))

    def long(self, before, beat):
        """With ``beat`` the frame is longer than allowed, or will be; true first on this beat."""
        beats, empty = self._border(self.longest)
        return (before == beats) & (~beat.last | (beat.empty < empty))
