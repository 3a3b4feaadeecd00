"""Input of the receive engine: segments, ICMP notices and connect requests as one tagged union.

RFC 9293, 3.10, names what a TCP reacts to: user calls, arriving segments, and time-outs. The
receive engine handles those that begin with a session lookup, one after the other:

===========  ===================  ================================================================
``kind``     variant of ``body``  source
===========  ===================  ================================================================
``SEGMENT``  ``segment``          a segment from the parser (RFC 9293, 3.10.7)
``NOTICE``   ``notice``           an ICMP error about a segment of ours (3.9.2.2), from
                                  :class:`~trebuchet.cores.tcp.icmp_error.IcmpErrorPort`
``CONNECT``  ``connect``          OPEN by software (3.10.1), from
                                  :class:`~trebuchet.cores.tcp.connect.ConnectPort`
===========  ===================  ================================================================

Rules: 1. Only the variant that ``kind`` names has a meaning. 2. The fields by which a session is
looked up, and those that are kept of its peer, have the same places in all variants. 3. The bits
that a variant does not use are 0: read as a segment, a notice and a request have no flags and no
payload. 4. Without ``config.icmp`` there is no ``NOTICE``, and without ``config.active`` no
``CONNECT``; the layout is the same.
"""

from amaranth import unsigned
from amaranth.lib import data, enum

from .record import record_layout
from .segment import rx_segment_layout

__all__ = ["InputKind", "input_layout", "notice_body", "segments_only"]


class InputKind(enum.Enum, shape=2):
    """What an item of the receive engine's input is."""

    SEGMENT = 0
    NOTICE = 1
    CONNECT = 2


def input_layout(config):
    """Return the layout of the receive engine's input: ``kind`` and the union ``body``."""
    segment = rx_segment_layout(config)
    variants = {
        "segment": segment,
        "notice": notice_body(config),
        "connect": _connect_body(segment, config),
    }
    return data.StructLayout({"kind": InputKind, "body": data.UnionLayout(variants)})


def notice_body(config):
    """Return the layout of a notice: the peer, and what was quoted and reported.

    The quoted number is at the place of a segment's ACK number, as what it is compared with.
    """
    return _overlay(
        rx_segment_layout(config),
        ip=("ip", unsigned(32)),
        remote_port=("remote_port", unsigned(16)),
        local_port=("local_port", unsigned(16)),
        seq=("ack", unsigned(32)),  # sequence number of our segment's first byte
        mss=("mss", unsigned(16)),  # that the next hop's MTU leaves, if ``code`` is 4
        code=("window", unsigned(8)),  # of Destination Unreachable (RFC 792)
    )


def _connect_body(segment, config):
    """The peer, and the service that the session is for."""
    names = ("mac", "ip", "remote_port", "local_port", *(("vlan",) if config.vlan else ()))
    same = {name: (name, segment.members[name]) for name in names}
    service = record_layout(config).members["service"]
    return _overlay(segment, **same, service=("ack", service))


def _overlay(segment, **fields):
    """Return a layout as large as ``segment``. ``fields``: of each its shape, and the field of a
    segment at whose place it is."""
    return data.FlexibleLayout(
        segment.size,
        {name: data.Field(shape, segment[at].offset) for name, (at, shape) in fields.items()},
    )


def segments_only(m, segment, item):
    """Connect stream ``segment``, of rx_segment_layout, to stream ``item``, of input_layout."""
    m.d.comb += [
        item.valid.eq(segment.valid),
        item.payload.kind.eq(InputKind.SEGMENT),
        item.payload.body.segment.eq(segment.payload),
        segment.ready.eq(item.ready),
    ]
