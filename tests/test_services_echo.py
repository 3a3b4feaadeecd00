"""``Echo``: every connection gets back what it sends."""

import pytest
from service_model import Connection, EngineModel
from streams import make_rng, run, seeds
from test_services_simple import random_connections
from trebuchet.cores.services.echo import Echo


@pytest.mark.parametrize("latency", [(1, 10), (30, 300)])
@seeds(3)
def test_echo(latency, seed):
    rng = make_rng(seed, "echo")
    memory = bytearray(1 << 14)
    chunk = [8, 100, 700][seed % 3]
    conns = list(random_connections(rng, 20, min(2000, 30 * chunk), chunk=chunk))
    dut = Echo(4, 9)
    engine = EngineModel(
        dut.service, memory, conns, rng=rng, sessions=4, segment_log2=9, latency=latency
    )
    run(dut, engine, limit=60_000, seed=seed)
    for conn in conns:
        if conn.ok:
            assert conn.received == conn.payload
            assert conn.freed == len(conn.payload)
            assert conn.got_fin
            assert not conn.received or conn.pushes[-1] == len(conn.received)
        else:
            assert conn.payload.startswith(conn.received)
    assert any(conn.ok for conn in conns)


@pytest.mark.parametrize("sessions", [1, 2, 5])
def test_echo_table_sizes(sessions):
    """Other table sizes than powers of two, and a table of one."""
    rng = make_rng(sessions, "sizes")
    conns = [Connection(rng.randbytes(300)) for _ in range(8)]
    dut = Echo(sessions, 8)
    engine = EngineModel(
        dut.service, bytearray(1 << 13), conns, rng=rng, sessions=sessions, segment_log2=8
    )
    run(dut, engine, limit=30_000, seed=sessions)
    assert all(conn.ok and conn.received == conn.payload for conn in conns)
