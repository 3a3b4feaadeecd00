"""What a role needs of its shell, and what the shell gives it."""

from collections.abc import Callable
from dataclasses import dataclass

from ..tcp.service import LENGTH_WIDTH

__all__ = ["MOST_RESULT", "ResultConfig", "RoleNeeds", "RolePlace"]

#: Bytes of the longest result: the largest result slot (``check_slots`` of the framer) but for the
#: 16 bytes before the result.
MOST_RESULT = (1 << (LENGTH_WIDTH - 1)) - 16


@dataclass(frozen=True)
class RoleNeeds:
    """What a role needs of the shell, with a certain configuration.

    Attributes
    ----------
    tag_width : int
        Least tag bits of its memory port.
    scratch_log2 : int or None
        log2 of the bytes of scratch memory that it has for each session; None: it has none.
    kinds : tuple of JobKind
        Kinds of job that it takes besides ``DATA``.
    operand : int
        Bytes of the largest operand that it makes sense to send it, beyond 32 KiB; 0: it does not
        say. The simulated board has segments for it.
    largest_result : callable or None
        ``largest_result(operand)``: rule 4 of the contract; None: results are short.
    """

    tag_width: int = 0
    scratch_log2: int | None = None
    kinds: tuple = ()
    operand: int = 0
    largest_result: Callable[[int], int] | None = None


@dataclass(frozen=True)
class RolePlace:
    """Where a role is put: what its shell gives it.

    Attributes
    ----------
    width, tag_width : int
        Of its memory port, in bits.
    sessions : int
        Session numbers 0 to ``sessions - 1`` may come.
    scratch : int or None
        Address of its scratch memory, a multiple of that of one session; None: it has none.
    """

    width: int
    tag_width: int
    sessions: int
    scratch: int | None = None


@dataclass(frozen=True)
class ResultConfig:
    """Option of a role whose results are as long as clients ask for.

    Attributes
    ----------
    result_bytes : int
        Bytes of the longest result that a shell with the role makes room for, 1 to
        :data:`MOST_RESULT`; a longer one is answered ``NO_ROOM``, unless another role of the plan
        has longer results. There are two result slots a session, each 16 bytes longer and a power
        of two. The default is a slot of 32 KiB: 4 MiB of external memory for 64 sessions.
    """

    result_bytes: int = (1 << 15) - 16

    def __post_init__(self):
        if not 1 <= self.result_bytes <= MOST_RESULT:
            raise ValueError(
                f"option result_bytes must be 1 to {MOST_RESULT}, not {self.result_bytes}"
            )
