"""What the session index keeps in memory, for tests: its formats, written down a second time.

The index itself is a ``dict`` from tuple to number; :func:`contents` reads what should be the same
dict from a memory image.
"""

from .tcp import speck64_128

__all__ = ["HASH_ROUNDS", "code_of", "contents", "tuple_of"]

HASH_ROUNDS = 6

_M32 = (1 << 32) - 1


def _rotate(value, by):
    return (value << by | value >> 32 - by) & _M32


def code_of(key_tuple, key):
    """The code of a tuple: all of it, in another order, which nobody without the key knows."""
    return speck64_128(key_tuple, key, HASH_ROUNDS)


def tuple_of(code, key):
    """The tuple with that code: the cipher backwards."""
    k, *rest = ((key >> 32 * i) & _M32 for i in range(4))
    keys = []
    for i in range(HASH_ROUNDS):
        keys.append(k)
        rest.append(((_rotate(rest[i], 24) + k) & _M32) ^ i)
        k = _rotate(k, 3) ^ rest[-1]
    x, y = code >> 32, code & _M32
    for k in reversed(keys):
        y = _rotate(y ^ x, 29)
        x = _rotate(((x ^ k) - y) & _M32, 8)
    return x << 32 | y


def contents(memory, key, *, sessions, bucket_bits, base=0, spilled=0):
    """Tuples and numbers in the buckets and the first ``spilled`` entries of the overflow list.

    Raises ``AssertionError`` if a tuple is there twice.
    """
    s, b = (sessions - 1).bit_length(), bucket_bits
    low = min(64 - b, 63 - s)
    found: dict[int, int] = {}

    def word(at):
        return int.from_bytes(memory[at : at + 8], "little")

    def enter(code, number):
        key_tuple = tuple_of(code, key)
        assert key_tuple not in found, f"tuple {key_tuple:#x} is in the index twice"
        found[key_tuple] = number

    for bucket in range(2 << b):
        at = base + 64 * bucket
        side, chosen = bucket >> b, bucket & ((1 << b) - 1)
        for place in range(7):
            entry = word(at + 8 * place + 8)
            if entry & 1:
                high = memory[at + 1 + place] & ((1 << 64 - b - low) - 1)
                rest = entry >> (s + 1) & ((1 << low) - 1) | high << low
                if side:
                    code = rest & ((1 << b) - 1) | chosen << b | rest >> b << 2 * b
                else:
                    code = chosen | rest << b
                enter(code, entry >> 1 & ((1 << s) - 1))
    at = base + 64 * (2 << b)
    for k in range(spilled):
        enter(word(at + 16 * k), word(at + 16 * k + 8) & ((1 << s) - 1))
    return found
