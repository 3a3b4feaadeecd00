"""The commands that an SD host sends, and their bits."""

from amaranth import Array, Cat, Mux
from amaranth.lib import enum

from .command import Response

__all__ = ["COMMANDS", "ERRORS", "Step", "among", "command_bit"]


class Step(enum.Enum, shape=5):
    """Commands in the order in which they are sent; ``APP_…`` are CMD55, the prefix of the next."""

    RESET = 0
    IF_COND = 1
    APP_COND = 2
    OP_COND = 3
    CID = 4
    RCA = 5
    CSD = 6
    SELECT = 7
    BLOCK = 8
    APP_WIDTH = 9
    WIDTH = 10
    SWITCH = 11
    POLL = 12
    READ = 13
    STOP = 14
    APP_COUNT = 16
    COUNT = 17
    WRITE = 18
    WRITE_STOP = 19
    STATUS = 20


#: Index and response.
COMMANDS = {
    Step.RESET: (0, Response.NONE),
    Step.IF_COND: (8, Response.SHORT),
    Step.APP_COND: (55, Response.SHORT),
    Step.OP_COND: (41, Response.PLAIN),
    Step.CID: (2, Response.LONG),
    Step.RCA: (3, Response.SHORT),
    Step.CSD: (9, Response.LONG),
    Step.SELECT: (7, Response.SHORT),
    Step.BLOCK: (16, Response.SHORT),
    Step.APP_WIDTH: (55, Response.SHORT),
    Step.WIDTH: (6, Response.SHORT),
    Step.SWITCH: (6, Response.SHORT),
    Step.POLL: (13, Response.SHORT),
    Step.READ: (18, Response.SHORT),
    Step.STOP: (12, Response.SHORT),
    Step.APP_COUNT: (55, Response.SHORT),
    Step.COUNT: (23, Response.SHORT),
    Step.WRITE: (25, Response.SHORT),
    Step.WRITE_STOP: (12, Response.SHORT),
    Step.STATUS: (13, Response.SHORT),
}
#: Constant parts of arguments: CMD8's 2.7 to 3.6 V and pattern, ACMD41's 3.2 to 3.4 V, bytes of a
#: block, four lines, and CMD6's change of group 1 to function 1, of others none.
_CONSTANTS = {
    Step.IF_COND: 0x1AA,
    Step.OP_COND: 0x300000,
    Step.BLOCK: 512,
    Step.WIDTH: 2,
    Step.SWITCH: 0x80FFFFF1,
}
#: Commands whose argument begins with the card's address.
_ADDRESSED = (Step.CSD, Step.SELECT, Step.APP_COND, Step.APP_WIDTH, Step.POLL, Step.APP_COUNT)
_ADDRESSED += (Step.STATUS,)
#: Commands whose argument is the sector.
_SECTOR = (Step.READ, Step.WRITE)
#: Bits of a card status that are errors of this command.
ERRORS = (*range(26, 32), *range(19, 22))


def among(step, steps):
    """Return whether ``step`` is one of ``steps``."""
    return Cat(step == one for one in steps).any()


def command_bit(m, step, place, bit, *, rca, sector, left, capacity):
    """Set ``bit`` to that of ``step``'s command at ``place``, 47 to 8.

    ``rca``, ``sector``, ``left``: the next bits of these numbers; ``capacity``: HCS of ACMD41.
    """
    n = place[:3]
    with m.Switch(step):
        for one, (index, _) in COMMANDS.items():
            constant = _CONSTANTS.get(one, 0)
            octets = [(constant >> 8 * k) & 255 for k in range(4)] + [index | 0x40]
            with m.Case(one):
                with m.Switch(place[3:6]):
                    for k, octet in enumerate(octets):
                        with m.Case(k + 1):
                            value = Array((octet >> i) & 1 for i in range(8))[n] if octet else 0
                            if k >= 2 and k < 4 and one in _ADDRESSED:
                                value = rca
                            if k < 4 and one in _SECTOR:
                                value = sector
                            if k < 2 and one is Step.COUNT:
                                value = left
                            if k == 3 and one is Step.OP_COND:
                                value = Mux(n == 6, capacity, 0)
                            m.d.comb += bit.eq(value)
