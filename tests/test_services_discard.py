"""``Discard`` frees what comes, and answers nothing."""

from service_model import EngineModel
from streams import make_rng, run, seeds
from test_services_simple import random_connections
from trebuchet.cores.services.discard import Discard


@seeds(3)
def test_discard(seed):
    rng = make_rng(seed, "discard")
    conns = list(random_connections(rng, 25, 3000))
    dut = Discard(4)
    engine = EngineModel(
        dut.service, bytearray(1 << 13), conns, rng=rng, sessions=4, segment_log2=9
    )
    run(dut, engine, limit=60_000, seed=seed)
    for conn in conns:
        assert conn.received == b""
        assert conn.ok or conn.gone
        assert not conn.ok or (conn.freed == len(conn.payload) and conn.got_fin)
