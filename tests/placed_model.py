"""The TCP engine's side of a service port whose sessions have places; see ``service_model.py``."""

from service_model import POSITIONS, EngineModel
from trebuchet.cores.tcp.service import EventKind

__all__ = ["PlacedModel"]


class PlacedModel(EngineModel):
    """:class:`EngineModel` with ``sessions`` places for up to ``alive`` connections at a time.

    A connection gets a place when there is something to tell. Each ``rest`` must be said of a
    session of which the service holds nothing, once between two events; it is honoured as the
    contract says. ``rests`` and ``opens`` count those that were, and OPENs after them.
    """

    def __init__(self, *args, alive=10, **more):
        super().__init__(*args, **more)
        self.places, self.alive = len(self.numbers), alive
        self.idle = []  # connections without a place
        self.rests = self.opens = 0
        self.whose = None

    def _event(self, conn, kind):
        fields, commit = super()._event(conn, kind)
        self.whose = conn
        if kind == EventKind.OPEN:
            conn.freed_before = conn.freed
            fields |= {"position": conn.freed % POSITIONS, "ok": int(not conn.closing)}
            self.opens += conn.freed != 0
        elif kind != EventKind.DATA:
            fields["position"] = conn.delivered % POSITIONS

        def committed():
            conn.said = self.whose = None
            if commit is not None:
                commit()

        return fields, committed

    def _choices(self, conn):
        return [] if conn is self.whose else super()._choices(conn)

    def _due(self, conn):
        conn.opened = True
        kinds = super()._choices(conn)
        conn.opened = False
        return kinds

    def _advance(self):
        rng = self.rng
        if self.queue and len(self.live) + len(self.idle) < self.alive and rng.random() < 0.2:
            self.idle.append(self.queue.pop(0))
        for conn in list(self.idle):
            if not conn.gone and conn.vanish(conn):
                conn.gone = True
            if self.numbers and rng.random() < 0.1 and self._due(conn):
                self.idle.remove(conn)
                conn.number = self.numbers.pop(rng.randrange(len(self.numbers)))
                self.live[conn.number] = conn
        queue, self.queue = self.queue, []
        super()._advance()
        self.queue = queue

    def _take_free(self, payload):
        conn = self.live.get(payload.session)
        super()._take_free(payload)
        if not payload.rest:
            return
        assert not payload.release, f"rest and release: {conn!r}"
        assert not conn.descriptors, f"rest before every SENT: {conn!r}"
        assert getattr(conn, "said", None) is None, f"rest twice: {conn!r}"
        conn.said = True
        if conn.eof or conn.gone or conn.closed or conn.delivered != conn.freed:
            return
        if self.whose is conn:  # its EOF is on its way
            return
        self.rests += 1
        self._give_back(conn)
        del self.live[conn.number]
        self.numbers.append(conn.number)
        self.idle.append(conn)
        conn.number, conn.opened, conn.said = None, False, None

    async def __call__(self, ctx):
        await super().__call__(ctx)
        assert len(self.numbers) == self.places, "a place was not given back"
        assert not self.idle
