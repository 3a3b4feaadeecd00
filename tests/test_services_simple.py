"""Echo, discard and responder against the engine's model: sessions come, go, reset and vanish."""

import pytest
from service_model import Connection, EngineModel
from streams import make_rng, run, seeds
from trebuchet.cores.services.discard import Discard
from trebuchet.cores.services.echo import Echo
from trebuchet.cores.services.responder import Responder


def received_fin(conn):
    return conn.got_fin


def after(rng, count):
    """A peer that goes away at a random moment once it has sent ``count`` bytes."""
    return lambda conn: conn.delivered >= count and rng.random() < 0.02


def random_connections(rng, count, longest, **kwargs):
    """Connections with random payloads; a fifth of the peers vanish on the way."""
    for _ in range(count):
        payload = rng.randbytes(rng.choice([0, 1, rng.randint(0, longest)]))
        vanish = {}
        if rng.random() < 0.2:
            vanish = {"vanish": after(rng, rng.randint(0, len(payload)))}
        yield Connection(payload, **vanish, **kwargs)


@seeds(3)
def test_responder(seed):
    rng = make_rng(seed, "responder")
    memory = bytearray(1 << 14)
    page = rng.randbytes(1024)
    memory[0x3007 : 0x3007 + 1024] = page
    conns = list(random_connections(rng, 15, 400))
    conns += list(random_connections(rng, 15, 400, fin=received_fin))
    conns = [conn for conn in conns if conn.payload or conn.fin is not received_fin]
    dut = Responder(4)

    async def setup(ctx):
        ctx.set(dut.addr, 0x3007)
        ctx.set(dut.length, len(page))

    engine = EngineModel(dut.service, memory, conns, rng=rng, sessions=4, segment_log2=9)
    run(dut, setup, engine, limit=60_000, seed=seed)
    for conn in conns:
        if conn.ok:
            assert conn.received == (page if conn.payload else b"")
            assert conn.freed == len(conn.payload)
            assert not conn.payload or conn.pushes == [len(page)]


def test_bad_parameters():
    with pytest.raises(ValueError, match="Number of sessions must be 1 to 131072, not 0"):
        Discard(0)
    with pytest.raises(ValueError, match=r"Segment size must be 2\*\*8 to 2\*\*19 bytes"):
        Echo(4, 20)
