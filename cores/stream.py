"""The packet stream: how frames, payloads and messages move between all cores.

A packet stream is an :class:`amaranth.lib.stream.Signature` whose payload is one *beat*, a
``data.Struct`` of these fields, for a data path of ``n = width // 8`` bytes:

=========  ==============  ====================================================================
field      width           meaning
=========  ==============  ====================================================================
``data``   ``8 * n``       the first byte on the wire is in bits 7..0
``empty``  ``log2(n)``     unused bytes at the top of the beat; 0 unless ``last`` is set
``first``  1               this beat starts a packet
``last``   1               this beat ends a packet
``error``  1               the packet is damaged and must be dropped; 0 unless ``last`` is set
=========  ==============  ====================================================================

Rules (each is proved for every component that claims the contract, ``formal/stream.py``):

1. A beat moves on a clock edge where ``valid`` and ``ready`` are both 1.
2. While ``valid`` is 1 and ``ready`` is 0, the payload does not change and ``valid`` stays 1.
3. A producer never waits for ``ready`` before it raises ``valid``.
4. ``first`` is 1 exactly on the first beat after reset and on each beat that follows ``last``.
5. ``empty`` and ``error`` are 0 unless ``last`` is 1. Bytes counted by ``empty`` are don't-care.
6. A packet has at least one byte. Packets never interleave on one stream.
7. ``error`` may be set on the last beat only, so a consumer that cannot take back what it has
   forwarded must store a packet before it acts on it, or hand ``error`` on.
"""

from amaranth import unsigned
from amaranth.lib import data, stream

__all__ = ["DATA_WIDTHS", "PacketSignature", "beat_layout", "check_data_width"]

#: Data path widths every core must be able to elaborate for, in bits.
DATA_WIDTHS = (32, 64, 128)


def check_data_width(width):
    """Return ``width``; raise ``ValueError`` if no core supports a data path of that many bits."""
    if width not in DATA_WIDTHS:
        raise ValueError(f"Data path width must be one of {DATA_WIDTHS} bits, not {width!r}")
    return width


def beat_layout(width):
    """Layout of one beat of a packet stream with a data path of ``width`` bits."""
    n = check_data_width(width) // 8
    return data.StructLayout(
        {
            "data": unsigned(width),
            "empty": unsigned((n - 1).bit_length()),
            "first": unsigned(1),
            "last": unsigned(1),
            "error": unsigned(1),
        }
    )


def PacketSignature(width=32):
    """Signature of a packet stream (see the module's docstring for its rules).

    ``stream.Signature`` is final, so this is a function that reads like the class it would be.

    Parameters
    ----------
    width : int
        Data path in bits, one of :data:`DATA_WIDTHS`.
    """
    return stream.Signature(beat_layout(width))
