"""Admission: which services may have one more session, so that none starves another."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .registers import settings_layout

__all__ = ["Admission", "latency"]


def latency(config):
    """Cycles from a strobe on ``taken``, or reset, until ``admits`` is right."""
    return 3 + (len(config.ports) - 1).bit_length()


class Admission(wiring.Component):
    """Counts the sessions of each service and keeps a reserve of slots for each.

    Service k has a reserve of ``settings.reserve_k`` slots. It may have one more session if it has
    fewer than its reserve, or if a slot is free that no reserve claims: if the sum of
    max(sessions, reserve) over all services is below the number of slots. A session that is
    admitted by this rule keeps the sum at or below that number, and a session that ends never
    raises it. So there is always a free slot for a service below its reserve, whatever peers of
    other services do: no service starves another (proof ``tcp_admission``).

    ==============  ===  ======================================================================
    ``taken``       In   a strobe per service: one of its sessions has begun
    ``freed``       In   a strobe per service: a slot of its sessions is free
    ``settings``    In   the programmable registers, of which ``reserve_k`` count
    ``used``        Out  array: sessions of each service
    ``admits``      Out  a bit per service: it may have one more session
    ``room``        Out  a slot is free that no reserve claims
    ``below``       Out  a bit per service: it has fewer than its reserve
    ``above``       Out  a bit per service: it has more than its reserve, and one may be ended
                         for the sake of another service
    ==============  ===  ======================================================================

    Latency: :func:`latency` cycles from ``taken`` to ``admits``; whoever begins sessions must not
    look at ``admits`` before that, and begin none but by what it saw then. ``freed`` may come at
    any time: until it has come through, too little is admitted, never too much. *Bad input*: with
    reserves of more than all slots together, services get their reserves first come, first served.
    A reserve that is raised while others use its slots is filled as their sessions end. Reset: no
    session; ``admits`` is right after the latency.
    """

    def __init__(self, config):
        self.config = config
        n = len(config.ports)
        super().__init__(
            {
                "taken": In(n),
                "freed": In(n),
                "settings": In(settings_layout(config)),
                "used": Out(range(config.sessions + 1)).array(n),
                "admits": Out(n),
                "room": Out(1),
                "below": Out(n),
                "above": Out(n),
            }
        )

    def elaborate(self, platform):
        m = Module()
        tops = []  # of each service, the slots that are its own: in use or reserved
        for k, used in enumerate(self.used):
            reserve = self.settings[f"reserve_{k}"]
            top = Signal(range(max(self.config.sessions, 1 << len(reserve)) + 1), name=f"top_{k}")
            m.d.sync += [
                used.eq(used + self.taken[k] - self.freed[k]),
                self.below[k].eq(used < reserve),
                self.above[k].eq(used > reserve),
                top.eq(Mux(used < reserve, reserve, used)),
            ]
            tops.append(top)
        sums = [tops]  # a register after each addition
        while len(sums[-1]) > 1:
            sums.append(self._add(m, sums[-1], len(sums)))
        self.sums, (claimed,) = sums, sums[-1]
        # `below` of as long ago as the sum it stands beside.
        under = self.below
        for step in range(len(sums) - 1):
            late = Signal.like(under, name=f"below_{step}")
            m.d.sync += late.eq(under)
            under = late
        room = claimed < self.config.usable
        m.d.sync += [self.admits.eq(Mux(room, ~0, under)), self.room.eq(room)]
        return m

    @staticmethod
    def _add(m, values, level):
        """Registers of the sums of pairs."""
        result = []
        for k in range(0, len(values), 2):
            pair = values[k : k + 2]
            total = Signal(len(pair[0]) + 1, name=f"sum_{level}_{k}")
            m.d.sync += total.eq(sum(pair[1:], pair[0]))
            result.append(total)
        return result
