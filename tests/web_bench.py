"""The web service between the engine's model (``service_model.py``) and a memory with an image."""

from placed_model import PlacedModel
from service_model import EngineModel
from streams import MemoryResponder, make_rng, run
from trebuchet.cores.web.service import Web
from trebuchet.models.http.image import Image
from trebuchet.models.http.limits import LIMITS
from trebuchet.models.http.request import Verdict, parse_head
from trebuchet.models.http.response import Object, prepared
from trebuchet.models.http.server import Connection as Server

__all__ = ["OBJECTS", "WebBench", "expected"]

SEGMENT_LOG2 = 12
BASE = 0x20000

OBJECTS = {
    b"/": Object(b"<p>root</p>", b"text/html; charset=utf-8", 0x0123456789ABCDEF),
    b"/empty": Object(b"", b"application/octet-stream", 1),
    b"/one": Object(b"1", b"text/plain", 2),
    b"/eight+eight=16.txt": Object(b"16" * 8, b"text/plain", 3),
    b"/" + b"long/" * 19: Object(b"long", b"text/plain", 4),
    b"/big": Object(bytes(range(256)) * 10, b"application/octet-stream", 5),
}


class Fast(Server):
    """The golden model with what gateware alone answers: 503 for what is the firmware's."""

    def _unusual(self, head):
        self.closed = True
        request = parse_head(head, self.limits)
        return prepared(Verdict.UNAVAILABLE).sent(request.head)


def expected(payload, objects=OBJECTS, limits=LIMITS, server=Fast, cold=frozenset()):
    """All that a connection gets, and whether the server closes by itself."""
    server = server(objects, limits, cold)
    out = server.receive(payload)
    return out, server.closed


class WebBench:
    """Runs connections through a :class:`Web`, and compares what each gets with the model."""

    def __init__(
        self,
        seed,
        *,
        width=64,
        sessions=3,
        lanes=2,
        rest=False,
        objects=OBJECTS,
        latency=(2, 40),
        stall=0.3,
        limits=LIMITS,
        desk=False,
        cold=frozenset(),
    ):
        self.seed, self.rng = seed, make_rng(seed, "bench")
        self.image = image = Image(objects, BASE, cold=cold)
        self.cold = cold
        self.objects, self.sessions, self.stall = objects, sessions, stall
        self.memory = bytearray(self.rng.randbytes(BASE) + image.bytes)
        self.memory += bytes(-len(self.memory) % 4096)
        self.dut = Web(
            width,
            sessions,
            SEGMENT_LOG2,
            lanes=lanes,
            rest=rest,
            image=(BASE, image.index, image.buckets),
            limits=limits,
            desk=desk,
        )
        self.server = Server if desk else Fast
        self.limits = self.dut.limits
        self.model = PlacedModel if rest else EngineModel
        self.responder = MemoryResponder(
            self.dut.mem,
            self.memory,
            rng=make_rng(seed, "memory") if stall else None,
            latency=latency,
            stall=stall,
        )
        self.counters = {}

    def run(self, conns, *others, limit=400_000):
        engine = self.engine = self.model(
            self.dut.service,
            self.memory,
            conns,
            rng=self.rng,
            sessions=self.sessions,
            segment_log2=SEGMENT_LOG2,
            responder=self.responder,
            stall=self.stall,
        )

        async def main(ctx):
            await engine(ctx)
            for register in self.dut.block.registers:
                self.counters[register.name] = ctx.get(getattr(self.dut.csr, register.name))
            slots = self.dut.slots.slots
            assert not any(ctx.get(slot.read) | ctx.get(slot.parses) for slot in slots)

        run(self.dut, main, self.responder, *others, limit=limit, seed=self.seed)

    def check(self, conn):
        out, _ = expected(conn.payload, self.objects, self.limits, self.server, self.cold)
        if conn.ok:
            assert conn.received == out, conn.payload
            assert conn.got_fin
        else:
            assert conn.gone
            assert out.startswith(conn.received)
