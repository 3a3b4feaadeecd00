"""What a session takes in external memory: a line, and an extension while something is in flight.

A *line* is 64 bytes: who the session is with (14 bytes, and 17 bits more with VLANs), behind that,
to the bit, the part of the record that cannot be told from the rest, and in the last bit whether
the extension counts. An *extension* is at most 128 bytes: the four descriptors, 16 bytes each,
then the rest of the record. All numbers are little-endian. All lines are first, then all
extensions: a session takes 64 bytes at rest.

A session is *at rest* if nothing is queued, sent and unacknowledged, due to be sent or told,
received and unconsumed, kept beyond a gap, or timed, and its service has no place for it; or if
there is no session. What the extension
would say then follows from the line:

=====================================  ==========================================================
fields                                 at rest
=====================================  ==========================================================
``snd_nxt``, ``snd_max``, ``snd_end``  ``snd_una``
``recover``                            is not after ``snd_una``; any such value means the same
``rcv_pub``                            ``rcv_nxt``
``rcv_cons``                           ``rcv_nxt``, less the peer's FIN
all other fields of the extension      0, or without meaning: ``segment``, ``place``, the runs'
                                       places, ``rtt_seq``, ``rtt_start``
=====================================  ==========================================================
"""

from amaranth.hdl import C, Cat, Shape, Value
from amaranth.lib import data

from .record import RUNS, Phase, descriptor_layout, peer_layout, record_layout

__all__ = ["DESCRIPTOR_BITS", "EXTENSION", "EXTENSION_BYTES", "LINE_BYTES", "at_rest"]
__all__ += [
    "extension_layout",
    "extension_used",
    "line_layout",
    "pack_line",
    "rest_layout",
    "unpack",
    "whole",
]

#: Bytes of a line, and of a place for an extension.
LINE_BYTES, EXTENSION_BYTES = 64, 128
#: Bits of a descriptor's place in the extension.
DESCRIPTOR_BITS = 128

#: Fields of the record that are in the extension. All others are in the line.
EXTENSION = ("rcv_pub", "rcv_cons", "has_segment", "segment", "kept")
EXTENSION += tuple(name for names in RUNS for name in names)
EXTENSION += ("snd_nxt", "snd_max", "snd_end", "recover", "recovering", "count", "ahead", "flight")
EXTENSION += ("rtt_on", "rtt_seq", "rtt_start")
#: What is to be sent or told, and is soon: a session that waits for it is not at rest.
_DUE = ("syn_due", "rst_due", "resend", "probe", "keepalive", "check")
_DUE += ("ev_open", "ev_data", "ev_eof", "dup_acks", "placed")
EXTENSION += (*_DUE, "place")
#: Of those, which must be 0 at rest.
_ZERO = ("has_segment", "kept", "recovering", "count", "ahead", "flight", "rtt_on", *_DUE)


def _part(config, inside):
    members = record_layout(config).members
    return data.StructLayout({n: s for n, s in members.items() if (n in EXTENSION) == inside})


def rest_layout(config):
    """The fields of the record that are in the line."""
    return _part(config, False)


def line_layout(config):
    """A line. Too many fields raise ``ValueError``."""
    rest = rest_layout(config)
    spare = 8 * LINE_BYTES - peer_layout(config).size - rest.size - 1
    if spare < 0:
        raise ValueError(f"Record at rest must fit a line, not be {-spare} bits too long")
    return data.StructLayout(
        {"peer": peer_layout(config), "rest": rest, "spare": spare, "extended": 1}
    )


def extension_layout(config):
    """The rest of the record, which is behind the descriptors."""
    layout = _part(config, True)
    room = 8 * EXTENSION_BYTES - 4 * DESCRIPTOR_BITS
    if layout.size > room or descriptor_layout().size > DESCRIPTOR_BITS:
        raise ValueError(f"Extension must be {room} bits long at most, not {layout.size}")
    return layout


def extension_used(config):
    """Bytes of an extension that are moved, a multiple of 16."""
    return -(-(4 * DESCRIPTOR_BITS + extension_layout(config).size) // 128) * 16


def whole(config, rest, extension):
    """The record that a line and an extension are the parts of, as a value."""
    members = record_layout(config).members
    return Cat(Value.cast((extension if n in EXTENSION else rest)[n]) for n in members)


def at_rest(record):
    """Whether the line says all of ``record`` that has a meaning."""
    left = [record[name] == 0 for name in _ZERO if name in record.shape().members]
    left += [record[name] == record.snd_una for name in ("snd_nxt", "snd_max", "snd_end")]
    left += [record.rcv_pub == record.rcv_nxt, record.rcv_cons == _consumed(record)]
    return Cat(left).all() | (record.phase == Phase.FREE)


def _consumed(rest):
    return (rest.rcv_nxt - rest.fin_seen)[:32]


def pack_line(config, record, peer, extended):
    """The line of ``record``, as a value."""
    layout = line_layout(config)
    rest = Cat(Value.cast(record[name]) for name in rest_layout(config).members)
    return Cat(Value.cast(peer), rest, C(0, layout.members["spare"]), extended)


def unpack(config, rest):
    """The extension of a record at rest, as a value, from what its line says."""
    same = dict.fromkeys(("snd_nxt", "snd_max", "snd_end", "recover"), rest.snd_una)
    same |= {"rcv_pub": rest.rcv_nxt, "rcv_cons": _consumed(rest)}
    layout = extension_layout(config)
    return Cat(
        same[name] if name in same else C(0, Shape.cast(shape).width)
        for name, shape in layout.members.items()
    )
