"""What a measurement needs and a machine may lack."""

from ..models.errors import TrebuchetError

__all__ = ["Unmeasurable"]


class Unmeasurable(TrebuchetError):
    """Something is not on this machine; the message says what, and how to get it."""
