"""Services with rows for few sessions, against the engine's model of many that come and go."""

import pytest
import test_services_framer
import test_services_mailbox
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from placed_model import PlacedModel
from service_model import Connection
from streams import make_rng, run, seeds
from test_services_mailbox import random_request
from test_services_simple import random_connections
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.services.discard import Discard
from trebuchet.cores.services.echo import Echo
from trebuchet.cores.services.merge import ServiceMerge
from trebuchet.cores.services.responder import Responder
from trebuchet.cores.tcp.service import ServiceSignature
from trebuchet.models.smp_framing import data_message


def late_fin(rng, chance=0.01):
    """The peer closes some time after all is said: in between its session can rest."""
    return lambda conn: rng.random() < chance


def used(engine, rests=1):
    assert engine.rests >= rests, "no place was given back before its session's end"
    assert engine.opens, "no session went on at another place"


@pytest.mark.parametrize("places", [1, 2])
@seeds(2)
def test_echo(places, seed):
    rng = make_rng(seed, "echo")
    conns = list(random_connections(rng, 20, 600, chunk=90, fin=late_fin(rng)))
    dut = Echo(places, 8, rest=True)
    memory = bytearray(1 << 13)
    engine = PlacedModel(dut.service, memory, conns, rng=rng, sessions=places, segment_log2=8)
    run(dut, engine, limit=90_000, seed=seed)
    used(engine)
    for conn in conns:
        assert conn.payload.startswith(conn.received)
        assert not conn.ok or conn.received == conn.payload


@seeds(2)
def test_discard(seed):
    rng = make_rng(seed, "discard")
    conns = list(random_connections(rng, 25, 1500, chunk=300, fin=late_fin(rng)))
    dut = Discard(2, rest=True)
    memory = bytearray(1 << 13)
    engine = PlacedModel(dut.service, memory, conns, rng=rng, sessions=2, segment_log2=9)
    run(dut, engine, limit=90_000, seed=seed)
    used(engine, rests=10)
    assert all(conn.gone or conn.freed == len(conn.payload) for conn in conns)


@seeds(2)
def test_responder(seed):
    """It has closed, and the peer goes on: the session rests, and what still comes is consumed."""
    rng = make_rng(seed, "responder")
    memory = bytearray(1 << 14)
    page = rng.randbytes(1024)
    memory[0x3007 : 0x3007 + 1024] = page
    conns = list(random_connections(rng, 25, 700, chunk=60, fin=late_fin(rng)))
    dut = Responder(2, rest=True)

    async def setup(ctx):
        ctx.set(dut.addr, 0x3007)
        ctx.set(dut.length, len(page))

    engine = PlacedModel(dut.service, memory, conns, rng=rng, sessions=2, segment_log2=9)
    run(dut, setup, engine, limit=90_000, seed=seed)
    used(engine)
    for conn in conns:
        assert not conn.ok or conn.received == (page if conn.payload else b"")


@seeds(2)
def test_framer(seed):
    """Messages, bad ones after which the connection is closed, and ends in the middle of one."""
    bench = test_services_framer.Bench(seed, sessions=2, rest=True)
    rng, conns = bench.rng, []
    for _ in range(10):
        payload = test_services_framer.random_stream(rng, rng.randint(0, 4))
        conns.append(conn := Connection(payload, chunk=200, fin=late_fin(rng, 0.002)))
        if rng.random() < 0.2:
            conn.vanish = test_services_framer.vanish_after(rng, rng.randint(0, len(payload)))
    bench.run(conns, limit=150_000)
    used(bench.engine)
    for conn in conns:
        test_services_framer.check(conn)
    assert bench.counters["messages"] == len(bench.role.seen)


@seeds(1)
def test_framer_with_ports(seed):
    """Places of two ports behind one framer: each connection's messages go to its port's role."""
    bench = test_services_framer.Bench(seed, sessions=4, roles=(1, 0), count=2, rest=True)
    bench.dut = _Ports(bench.dut, 1)
    rng, wanted, engines = bench.rng, {}, []
    for port, role in enumerate((1, 0)):
        conns = []
        for k in range(8):
            conn = Connection(b"", chunk=60, fin=late_fin(rng, 0.002))
            for ident in range(100 * port + 10 * k, 100 * port + 10 * k + rng.randint(0, 3)):
                conn.payload += data_message(ident, rng.randbytes(rng.randint(0, 40)))
                wanted[ident] = role
            conns.append(conn)
        segments = bench.dut.framer.segment_log2
        engines.append(
            PlacedModel(
                bench.dut.ports[port], bench.memory, conns, rng=rng, sessions=2,
                segment_log2=segments, pool=test_services_framer.POOL + (4 * port << segments),
                writable=range(len(bench.memory)),
            )
        )  # fmt: skip
        bench.conns = [*getattr(bench, "conns", []), *conns]

    async def doors(ctx):
        ctx.set(bench.dut.framer.doors, 3)

    run(bench.dut, doors, *engines, bench.responder, bench.role, limit=150_000, seed=seed)
    for engine in engines:
        used(engine)
    for conn in bench.conns:
        test_services_framer.check(conn)
    assert bench.role.roles == wanted


class _Ports(wiring.Component):
    """A framer with its ports, whose places have ``bits`` bits each."""

    def __init__(self, framer, bits):
        self.framer, self.merge = framer, ServiceMerge(len(framer.roles), bits)
        super().__init__({"ports": In(ServiceSignature(rest=True)).array(len(framer.roles))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.framer, m.submodules.merge = framer, merge = self.framer, self.merge
        wiring.connect(m, merge.service, framer.service)
        for k, port in enumerate(merge.ports):
            wiring.connect(m, port, wiring.flipped(self.ports[k]))
        m.d.comb += [framer.origin.eq(merge.origin), merge.to.eq(framer.to)]
        return m


def test_a_stream_keeps_its_place():
    """``first`` of a stream message depends on those before: their session does not rest."""
    bench = test_services_framer.Bench(1, sessions=2, kinds=(JobKind.STREAM,), rest=True)
    rng = bench.rng
    stream = b"".join(data_message(k, rng.randbytes(20)) for k in range(3))
    streams = [Connection(b"\4" + stream[1:], fin=late_fin(rng, 0.002)) for _ in range(2)]
    for conn in streams:
        conn.payload = b"".join(b"\4" + conn.payload[k * 32 + 1 : k * 32 + 32] for k in range(3))
    bench.run(streams)
    assert bench.engine.rests == 0
    others = [Connection(stream, fin=late_fin(rng, 0.002)) for _ in range(6)]
    bench = test_services_framer.Bench(1, sessions=2, kinds=(JobKind.STREAM,), rest=True)
    bench.run(others)
    used(bench.engine)


@seeds(1)
def test_mailbox(seed):
    bench = test_services_mailbox.Bench(seed, rest=True)
    rng, conns = bench.rng, []
    for _ in range(12):
        payload = b"".join(random_request(rng) for _ in range(rng.randint(0, 3)))
        if rng.random() < 0.2:
            payload = payload[: rng.randrange(len(payload) + 1)]
        conns.append(conn := Connection(payload, chunk=100, fin=late_fin(rng, 0.0005)))
        if rng.random() < 0.2:
            limit = rng.randint(0, len(payload))
            conn.vanish = lambda c, limit=limit: c.delivered >= limit and rng.random() < 0.01
    bench.run(conns, limit=250_000)
    used(bench.engine)
    for conn in conns:
        test_services_mailbox.check(conn)
