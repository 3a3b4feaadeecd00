"""Where the session index keeps what in memory, and the formats of its words."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Mux
from amaranth.lib import data

from ..memory import ADDR_WIDTH

__all__ = ["HASH_ROUNDS", "SPILLED", "IndexLayout", "place_layout"]

#: Rounds of the cipher after which its state is the *code* of a tuple.
HASH_ROUNDS = 6

#: Instead of the number of a place: the entry is on the overflow list.
SPILLED = 7

#: Bytes that the base address is a multiple of: the largest burst.
ALIGN = 64


def _check(ok, what, expected, value):
    if not ok:
        raise ValueError(f"{what} must be {expected}, not {value!r}")


def place_layout():
    """Where an entry is: in the left or right bucket, and there at which place."""
    return data.StructLayout({"side": 1, "index": 3})


@dataclass(frozen=True)
class IndexLayout:
    """Geometry of a session index. The hash is a permutation: its value, the *code*, is the tuple.

    Bits of the code choose the buckets: from the bottom ``bucket_bits`` for the left one, as many
    for the right one. An entry holds the others, so an entry that is equal *is* the tuple's, and no
    tuple is kept anywhere to be compared with.

    =====================  =====================================================================
    bucket                 word 0: byte p + 1 holds the upper bits of the rest of place p's code;
                           word p + 1: bit 0 valid, then the number, then the rest's lower bits
    overflow entry         word 0: the code; word 1: the number
    =====================  =====================================================================

    From ``base`` on: left buckets, right buckets, room for ``sessions`` overflow entries. Words are
    64 bits, the first byte in bits 7..0.

    Attributes
    ----------
    sessions : int
        Session numbers, a power of two from 2 to 131,072.
    base : int
        Address of the first bucket, a multiple of 64.
    bucket_bits : int or None
        Buckets a side, as a power of two; None: one for 8 sessions, so there are 1.75 times as
        many places as sessions.
    places : int
        Places of a bucket: 7 for buckets of 64 bytes; 1 or 3 for small proofs.
    """

    sessions: int = 131072
    base: int = 0
    bucket_bits: int | None = None
    places: int = 7

    def __post_init__(self):
        n = self.sessions
        ok = isinstance(n, int) and 2 <= n <= 1 << 17 and not n & (n - 1)
        _check(ok, "Number of sessions", "a power of two from 2 to 131072", n)
        _check(self.places in (1, 3, 7), "Places of a bucket", "1, 3 or 7", self.places)
        if self.bucket_bits is None:
            object.__setattr__(self, "bucket_bits", max(1, self.session_bits - 3))
        low = max(1, self.session_bits - 7)  # or the rest of a code does not fit its place
        ok = low <= self.bucket_bits <= 16
        _check(ok, "Bits of a bucket's number", f"{low} to 16", self.bucket_bits)
        ok = self.base % ALIGN == 0 and 0 <= self.base <= (1 << ADDR_WIDTH) - self.size
        _check(ok, "Index base", f"a multiple of {ALIGN} with the index inside", self.base)

    @property
    def session_bits(self):
        """Bits of a session number."""
        return (self.sessions - 1).bit_length()

    @property
    def bucket_words(self):
        """Words of a bucket."""
        return self.places + 1

    @property
    def buckets(self):
        """Buckets of both sides."""
        return 2 << self.bucket_bits

    @property
    def spill_base(self):
        """Address of the overflow list."""
        return self.base + 8 * self.buckets * self.bucket_words

    @property
    def size(self):
        """Bytes from the base to the end of the overflow list."""
        return 8 * self.buckets * self.bucket_words + 16 * self.sessions

    @property
    def low_bits(self):
        """Bits of the rest of a code that are in the entry's own word."""
        return min(64 - self.bucket_bits, 63 - self.session_bits)

    @property
    def high_bits(self):
        """Bits of it that are in its byte of word 0."""
        return 64 - self.bucket_bits - self.low_bits

    def left(self, code):
        """Left bucket of a code."""
        return code[: self.bucket_bits]

    def right(self, code):
        """Right bucket of a code."""
        return code[self.bucket_bits : 2 * self.bucket_bits]

    def bucket(self, code, side):
        """Number of one of its buckets among all of them."""
        return Cat(Mux(side, self.right(code), self.left(code)), side)

    def rest(self, code, side):
        """The bits of the code that do not follow from the bucket."""
        b = self.bucket_bits
        return Mux(side, Cat(code[:b], code[2 * b :]), code[b:])

    def address(self, bucket):
        """Address of a bucket, by its number among all of them."""
        return self.base + (bucket << (8 * self.bucket_words).bit_length() - 1)
