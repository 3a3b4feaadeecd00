"""The drive port: how cores reach a block device.

A port is a requester's view of a device of sectors of 512 bytes. It has four streams and three
signals (directions as the requester sees them):

===========  ====  ==========================================================================
member       dir   payload
===========  ====  ==========================================================================
``cmd``      Out   ``write``, ``lba`` (first sector), ``count`` (sectors, 1 to 65,535), ``tag``
``wdata``    Out   packet stream: the data of write commands
``rdata``    In    packet stream: the data of read commands
``done``     In    ``tag``, ``status`` (:class:`DriveStatus`)
``sectors``  In    size of the medium in sectors; 0 unless ``ready``
``ready``    In    a medium is there and can be used
``present``  In    a medium is there, as far as the device can detect it
===========  ====  ==========================================================================

Rules:

1. Every stream keeps the rules of :mod:`trebuchet.cores.stream`.
2. Commands are executed and completed in the order in which they were accepted, each with one
   ``done``. A device may accept a command before earlier ones have completed.
3. The data of a write command are one packet of exactly ``512 * count`` bytes, in command order;
   the requester may offer it before or after the command. The device takes the whole packet, also
   of a command that fails; ``done`` comes after its last beat. A packet that ends with ``error`` or
   has another length fails its command with ``DATA``, after sectors may have been written.
4. The data of a read command are one packet, in command order, of at least one beat: exactly
   ``512 * count`` bytes, or, if the read fails, not more than that and with ``error`` on its last
   beat. Beats before that one are correct; what the last one holds means nothing. ``done`` comes
   after its last beat, with a status other than ``OK`` exactly if it had ``error``.
5. ``done`` of a write with status ``OK``: the device reported the data as written. A later read
   sees them.
6. A command with ``count`` 0 fails with ``RANGE``; so does one that reaches past the last sector,
   before or after sectors inside were moved. A command while ``ready`` is 0 fails with ``ABSENT``.
7. A requester must be able to take all read data and every ``done`` it asked for. It may stall
   ``rdata`` and ``wdata`` for any time: the device waits.
8. Every command ends within a time that the device states, whatever the medium does, also if it is
   removed, provided that the requester keeps rule 7.
9. ``ready`` falls when the medium is removed or fails, and rises after it was replaced; what was
   read before may then be another medium's.
"""

import enum

from amaranth import unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib import enum as amaranth_enum
from amaranth.lib.wiring import In, Out

from ..stream import PacketSignature, beat_layout

__all__ = ["COUNT_WIDTH", "LBA_WIDTH", "SECTOR", "DriveSignature", "DriveStatus"]

#: Bytes of a sector.
SECTOR = 512
LBA_WIDTH = 48
COUNT_WIDTH = 16


@enum.unique
class DriveStatus(amaranth_enum.Enum, shape=unsigned(3)):
    """How a command ended."""

    OK = 0
    #: The command reaches past the last sector, or has no sectors.
    RANGE = 1
    #: The data were damaged and repetition did not help, or the device reported an error.
    DATA = 2
    #: The device did not answer in time.
    TIMEOUT = 3
    #: There is no medium that can be used.
    ABSENT = 4
    #: The medium cannot be written to.
    PROTECTED = 5
    #: The job cannot be executed as stated (of :class:`~.to_memory.DriveDma`).
    INVALID = 6


class DriveSignature(wiring.Signature):
    """Signature of a drive port, from the requester's side.

    Parameters
    ----------
    width : int
        Data path in bits, one of :data:`trebuchet.cores.stream.DATA_WIDTHS`.
    tag_width : int
        Bits of a tag; 0 or more.
    """

    def __init__(self, width=32, tag_width=2):
        if not isinstance(tag_width, int) or tag_width < 0:
            raise ValueError(f"Tag width must be a non-negative integer, not {tag_width!r}")
        beat_layout(width)  # which checks it
        self.width, self.tag_width = width, tag_width
        self.cmd_layout = data.StructLayout(
            {
                "write": unsigned(1),
                "lba": unsigned(LBA_WIDTH),
                "count": unsigned(COUNT_WIDTH),
                "tag": unsigned(tag_width),
            }
        )
        self.done_layout = data.StructLayout({"tag": unsigned(tag_width), "status": DriveStatus})
        super().__init__(
            {
                "cmd": Out(stream.Signature(self.cmd_layout)),
                "wdata": Out(PacketSignature(width)),
                "rdata": In(PacketSignature(width)),
                "done": In(stream.Signature(self.done_layout)),
                "sectors": In(LBA_WIDTH),
                "ready": In(1),
                "present": In(1),
            }
        )

    def __eq__(self, other):
        return (
            isinstance(other, DriveSignature)
            and self.width == other.width
            and self.tag_width == other.tag_width
        )

    def __repr__(self):
        return f"DriveSignature(width={self.width}, tag_width={self.tag_width})"
