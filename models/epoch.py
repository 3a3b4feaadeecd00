"""Epochs of leases: fencing tokens that only increase, in 16 bits of a message's header.

A board's lease has an epoch. Before a board is granted again its epoch is raised; the board then
refuses what its last holder still sends. The header of the source has 24 reserved bits; the first
eight name a role (:mod:`~.smp_framing`), so 16 are left. They are compared by serial number
arithmetic (RFC 1982, 3.2): an epoch is newer than another if it is 1 to 32,767 steps ahead of it.
Numbers come again after 65,535 grants of a board: a message must not be on its way for so long.

Epoch 0 is none: it is never granted, a board has it after reset, and any other is newer.
"""

__all__ = ["EPOCH_BITS", "NO_EPOCH", "check_epoch", "is_newer", "next_epoch"]

EPOCH_BITS = 16
NO_EPOCH = 0
_HALF = 1 << EPOCH_BITS - 1


def check_epoch(epoch):
    """Return ``epoch``, or raise ``ValueError`` unless it is one that may be granted."""
    if not isinstance(epoch, int) or not 0 < epoch < 1 << EPOCH_BITS:
        raise ValueError(f"An epoch must be 1 to {(1 << EPOCH_BITS) - 1}, not {epoch!r}")
    return epoch


def is_newer(epoch, other):
    """Whether a board whose lease has epoch ``other`` may be given ``epoch``."""
    if epoch == NO_EPOCH or other == NO_EPOCH:
        return epoch != other and epoch != NO_EPOCH
    return 0 < (epoch - other) % (1 << EPOCH_BITS) < _HALF


def next_epoch(epoch):
    """The epoch after ``epoch``; none is 0."""
    return epoch % ((1 << EPOCH_BITS) - 1) + 1
