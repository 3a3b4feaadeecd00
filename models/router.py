"""The elastic router, cycle by cycle, as naively as it can be said: lists and loops.

The golden model of ``cores/router``: with the same flits and credits in, the same flits and
credits come out in the same cycles (links of one phit a flit).
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

__all__ = ["Flit", "RouterModel", "Step"]


@dataclass(frozen=True)
class Flit:
    vc: int
    head: bool
    tail: bool
    dest: int = 0
    data: int = 0


@dataclass
class Step:
    """What the router shows after a cycle, one entry a port."""

    flits: list[Flit | None]
    #: Bit v: a credit for VC v.
    credits: list[int]
    dropped: list[bool]
    malformed: list[bool]
    overflow: list[bool]


Way = tuple[int, int] | None


@dataclass
class _Input:
    queues: list[deque[tuple[Flit, Way]]]
    #: Way of the packet that is open on each VC, and whether one is.
    ways: list[Way]
    opened: list[bool]
    #: Words in memory that left in the last cycle: their places are not free yet.
    freed: int = 0


@dataclass
class _Output:
    #: Who owns each VC: (input, VC).
    owners: list[tuple[int, int] | None]
    #: Flits of each VC that the next buffer may hold.
    held: list[int]
    last: int = -1
    takes: list[tuple[int, int]] = field(default_factory=list)


class RouterModel:
    """``route(port, vc, dest)`` is ``(output, VC)`` or None."""

    def __init__(
        self,
        ports: int,
        vcs: int,
        buffer_flits: int,
        reserved: int,
        route: Callable[[int, int, int], Way] | None = None,
        pass_through: bool = True,
    ) -> None:
        self.ports, self.vcs = ports, vcs
        self.depth, self.reserved = buffer_flits, reserved
        self.route = route or (lambda port, vc, dest: (dest, vc) if dest < ports else None)
        self.pass_through = pass_through
        self.inputs = [
            _Input([deque() for _ in range(vcs)], [None] * vcs, [False] * vcs) for _ in range(ports)
        ]
        self.outputs = [_Output([None] * vcs, [0] * vcs) for _ in range(ports)]

    def step(self, flits: Sequence[Flit | None], credits: Sequence[int]) -> Step:
        """One cycle: what comes in at each input, which credits come back at each output."""
        n = self.ports
        out = Step([None] * n, [0] * n, [False] * n, [False] * n, [False] * n)
        stored = [sum(map(len, i.queues)) for i in self.inputs]
        full = [s + i.freed >= self.depth for s, i in zip(stored, self.inputs, strict=True)]
        arrivals = [self._arrive(p, flit, full[p], out) for p, flit in enumerate(flits)]
        new = [
            arrived is not None and not i.queues[arrived[0].vc]
            for i, arrived in zip(self.inputs, arrivals, strict=True)
        ]
        self._append(arrivals, [x and self.pass_through for x in new])
        winners = [self._choose(o) for o in range(n)]
        leaving: list[set[int]] = [set() for _ in range(n)]
        for o, winner in enumerate(winners):
            if winner is not None:
                out.flits[o] = self._send(o, *winner)
                leaving[winner[0]].add(winner[1])
        for p, i in enumerate(self.inputs):
            for v, queue in enumerate(i.queues):
                if queue and queue[0][1] is None:
                    leaving[p].add(v)
        for p in range(n):
            self._leave(p, leaving[p], arrivals[p], new[p], out)
        for output, mask in zip(self.outputs, credits, strict=True):
            for v in range(self.vcs):
                if mask >> v & 1 and output.held[v] - (v in [w for _, w in output.takes]) > 0:
                    output.held[v] -= 1
            output.takes = []
        return out

    def _arrive(self, p: int, flit: Flit | None, full: bool, out: Step) -> tuple[Flit, Way] | None:
        """The way of the flit that comes in."""
        if flit is None:
            return None
        if flit.vc >= self.vcs:
            out.malformed[p] = True
            return None
        if full:
            out.overflow[p] = True
            return None
        i, v = self.inputs[p], flit.vc
        out.malformed[p] = i.opened[v] == flit.head
        if not i.opened[v]:
            i.ways[v] = self.route(p, v, flit.dest) if flit.head else None
            out.dropped[p] = flit.head and i.ways[v] is None
        i.opened[v] = not flit.tail
        return flit, i.ways[v]

    def _append(self, arrivals: Sequence[tuple[Flit, Way] | None], now: Sequence[bool]) -> None:
        for i, arrived, yes in zip(self.inputs, arrivals, now, strict=True):
            if arrived is not None and yes:
                i.queues[arrived[0].vc].append(arrived)

    def _may_send(self, output: _Output, vc: int) -> bool:
        lent = sum(max(0, held - self.reserved) for held in output.held)
        return output.held[vc] < self.reserved or lent < self.depth - self.vcs * self.reserved

    def _choose(self, o: int) -> tuple[int, int] | None:
        """Round robin over the first flits of all queues that could leave by this output."""
        output, n = self.outputs[o], self.ports * self.vcs
        for step in range(1, n + 1):
            k = (output.last + step) % n
            p, v = divmod(k, self.vcs)
            queue = self.inputs[p].queues[v]
            if not queue or queue[0][1] is None or queue[0][1][0] != o:
                continue
            vc = queue[0][1][1]
            if output.owners[vc] in (None, (p, v)) and self._may_send(output, vc):
                output.last = k
                return p, v
        return None

    def _send(self, o: int, p: int, v: int) -> Flit:
        output, (flit, way) = self.outputs[o], self.inputs[p].queues[v][0]
        assert way is not None
        vc = way[1]
        head = output.owners[vc] is None
        output.owners[vc] = None if flit.tail else (p, v)
        output.held[vc] += 1
        output.takes.append((o, vc))
        return replace(flit, vc=vc, head=head)

    def _leave(
        self,
        p: int,
        vcs: set[int],
        arrived: tuple[Flit, Way] | None,
        new: bool,
        out: Step,
    ) -> None:
        """Take out what left; store what came and did not pass through."""
        i = self.inputs[p]
        for v in vcs:
            i.queues[v].popleft()
            out.credits[p] |= 1 << v
        freed = len(vcs)
        if arrived is not None:
            v = arrived[0].vc
            if not (new and self.pass_through):
                i.queues[v].append(arrived)
            elif v in vcs:
                freed -= 1  # it was never stored
        i.freed = freed
