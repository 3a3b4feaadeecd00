"""Random bytes of a connection that speaks SMP, for tests of all that take its messages."""

import struct

from trebuchet.models.smp_framing import data_message

__all__ = ["random_stream"]


def random_stream(rng, messages, segment, bad, types):
    """Messages back to back, now and then a bad one, perhaps cut off in the middle.

    ``segment``: bytes of the largest message with its header. ``bad``: share of those with a type
    of ``types``, which are no data messages; as many are too large, and twice as many too short.
    """
    stream = b""
    for _ in range(messages):
        kind = rng.random()
        ident = rng.getrandbits(32)
        longest = segment - 12
        if kind < bad:
            stream += struct.pack("<BBBBI", rng.choice(types), 1, 2, 3, 5)
        elif kind < 2 * bad:
            stream += struct.pack("<B3xI", 3, rng.choice([segment - 7, 1 << 16, 0xFFFFFFFF]))
        elif kind < 4 * bad:
            size = rng.randrange(4)
            stream += struct.pack("<B3xI", 3, size) + rng.randbytes(size)
        else:
            length = rng.choice([0, 1, 4, longest, rng.randint(0, longest), rng.randint(0, 60)])
            stream += data_message(ident, rng.randbytes(length))
    if rng.random() < 0.3:
        stream = stream[: rng.randrange(len(stream) + 1)]
    return stream
