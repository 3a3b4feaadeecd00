"""The matrix-multiply role end to end below TCP: SMP messages in, products out."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from service_model import Connection, EngineModel
from streams import MemoryResponder, make_rng, run, seeds
from trebuchet.cores.memory_arbiter import MemoryArbiter
from trebuchet.cores.roles.matmul.role import MatmulRole
from trebuchet.cores.roles.slot import RoleSlot
from trebuchet.cores.services.framer import SmpFramer
from trebuchet.cores.tcp.service import ServiceSignature
from trebuchet.models import matmul
from trebuchet.models.smp_framing import data_message, frame
from trebuchet.models.status import Status

N = 8
WIDTH = 64
SESSIONS = 4
SEGMENT_LOG2 = 11  # three pairs and their header
SLOT = 512  # one product: two do not fit beside the header
POOL, SLOTS, SIZE = 0, 0x4000, 0x8000


class SmpMatmul(wiring.Component):
    """Framer, slot and role on one memory port, as in the shell."""

    def __init__(self):
        self.framer = SmpFramer(WIDTH, SESSIONS, 0, SEGMENT_LOG2, SLOTS, SLOT)
        self.slot = RoleSlot(MatmulRole(WIDTH, macs=8, n=N), "matmul", WIDTH)
        self.arbiter = MemoryArbiter(2, WIDTH, 2)
        super().__init__(
            {"service": In(ServiceSignature()), "mem": Out(self.arbiter.mem.signature)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.framer, m.submodules.slot = framer, slot = self.framer, self.slot
        m.submodules.arbiter = arbiter = self.arbiter
        wiring.connect(m, framer.job, slot.job)
        wiring.connect(m, slot.answer, framer.answer)
        wiring.connect(m, framer.mem, arbiter.ports[0])
        wiring.connect(m, slot.mem, arbiter.ports[1])
        wiring.connect(m, wiring.flipped(self.mem), arbiter.mem)
        wiring.connect(m, wiring.flipped(self.service), framer.service)
        m.d.comb += slot.csr.enable.eq(1)
        return m


def work(ident, operand):
    if not operand or len(operand) % matmul.pair_bytes(N):
        return Status.BAD_LENGTH, b""
    result = matmul.result(operand, N)
    return (Status.OK, result) if len(result) <= SLOT - 16 else (Status.NO_ROOM, b"")


def messages(rng, count):
    stream = b""
    for _ in range(count):
        operand = matmul.random_operand(rng, rng.choice([1, 1, 1, 2, 3]), N)
        operand = operand[: rng.choice([None, None, None, -1, 100, 0])]
        stream += data_message(rng.getrandbits(32), operand)
    return stream


@seeds(2)
def test_clients_get_their_products(seed):
    """Ten connections, four at a time, some of which go away in the middle of a message or job."""
    rng = make_rng(seed, "smp")
    memory = bytearray(rng.randbytes(SIZE))
    dut = SmpMatmul()
    conns = [Connection(messages(rng, rng.randint(1, 4)), chunk=600) for _ in range(10)]
    for conn in conns[::3]:
        count = rng.randrange(len(conn.payload))
        conn.vanish = lambda conn, count=count: conn.delivered >= count and rng.random() < 0.02
    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"), latency=(2, 30))
    engine = EngineModel(
        dut.service,
        memory,
        conns,
        rng=rng,
        sessions=SESSIONS,
        segment_log2=SEGMENT_LOG2,
        pool=POOL,
        responder=responder,
        writable=range(SLOTS, SLOTS + 2 * SESSIONS * SLOT),
    )
    run(dut, engine, responder, limit=60_000, seed=seed)
    products = 0
    for conn in conns:
        want, jobs, _ = frame(conn.payload, 1 << SEGMENT_LOG2, work)
        if conn.ok:
            assert conn.received == want
            products += sum(work(*job)[0] == Status.OK for job in jobs)
        else:
            assert want.startswith(conn.received)
    assert products, "some connection must have got a product"
