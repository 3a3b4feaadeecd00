"""Requests and messages whose rest does not come: they are answered, and waited for no more."""

import test_services_framer as framer_bench
import test_services_mailbox as mailbox_bench
from service_model import Connection
from streams import make_rng, seeds
from test_services_mailbox_binary import message
from trebuchet.models.smp_framing import data_message, error_message
from trebuchet.models.status import Status

LATE = 1 << 6


def sweeping(dut, period):
    """A test bench that begins a sweep every ``period`` cycles, and counts them."""

    async def bench(ctx):
        async for _ in ctx.tick():
            bench.now += 1
            ctx.set(dut.sweep, bench.now % period == 0)

    bench.now, bench.background = 0, True
    return bench


class Watch(mailbox_bench.Firmware):
    """Notes the status with which each request is shown."""

    def __init__(self, csr, rng):
        super().__init__(csr, rng)
        self.seen = []

    async def request(self, ctx):
        self.seen.append(ctx.get(self.csr.status))
        return await super().request(ctx)


def watched(seed):
    bench = mailbox_bench.Bench(seed)
    bench.cpu = Watch(bench.dut.csr, make_rng(seed, "cpu"))
    return bench


@seeds(3)
def test_mailbox_shows_the_half_of_a_late_request(seed):
    bench = watched(seed)
    half = Connection(b"GET half of a request\r\n", fin=lambda c: c.got_fin)
    quick = [Connection(b"GET close\r\n\r\n") for _ in range(6)]
    silent = Connection(b"", fin=lambda c: half.released)
    bench.run([half, silent, *quick], sweeping(bench.dut, 3000))
    assert (half.payload, True) in bench.cpu.served
    assert [bool(s & LATE) for s in bench.cpu.seen].count(True) == 1
    late = next(k for k, s in enumerate(bench.cpu.seen) if s & LATE)
    assert bench.cpu.served[late] == (half.payload, True)
    assert half.got_fin
    for conn in quick:
        mailbox_bench.check(conn)
        assert conn.ok
    assert silent.ok
    assert silent.received == b""


@seeds(2)
def test_a_header_without_its_payload_is_late(seed):
    """The firmware has asked for bytes of which none comes."""
    from test_services_mailbox_binary import BinaryBench

    bench = BinaryBench(seed)
    conn = Connection(message(3, b"x" * 40)[:8], fin=lambda c: c.got_fin)
    bench.run([conn], sweeping(bench.dut, 2500))
    assert bench.cpu.served[-1] == (b"", True, 1)
    assert conn.got_fin


@seeds(2)
def test_whole_requests_are_never_late(seed):
    """However often it is swept while they wait for the CPU: it shows them whole."""
    bench = watched(seed)
    bench.cpu.stuck = True
    conns = [Connection(b"GET close\r\n\r\n") for _ in range(mailbox_bench.SESSIONS)]

    async def wake(ctx):
        await ctx.tick().repeat(4000)
        bench.cpu.stuck = False

    bench.run(conns, wake, sweeping(bench.dut, 200))
    assert len(bench.cpu.served) == len(conns)
    assert not any(s & LATE for s in bench.cpu.seen)
    for conn in conns:
        mailbox_bench.check(conn)
        assert conn.ok


@seeds(3)
def test_mailbox_storm_with_sweeps(seed):
    """Clients of all kinds, swept all the time: whatever is shown is a prefix, all is released."""
    bench = watched(seed)
    rng, conns = bench.rng, []
    for _ in range(10):
        payload = b"".join(mailbox_bench.random_request(rng) for _ in range(rng.randint(0, 3)))
        kept = rng.random() < 0.4
        payload = payload[: rng.randrange(len(payload) + 1)] if kept else payload
        conns.append(Connection(payload, chunk=rng.choice([5, 300])))
        if rng.random() < 0.3:
            conns[-1].vanish = lambda c: rng.random() < 0.0005
    bench.run(conns, sweeping(bench.dut, rng.choice([150, 700])))
    assert all(conn.released for conn in conns)
    for shown, partial in bench.cpu.served:
        assert partial or shown.endswith(b"\r\n\r\n")
        assert any(shown in conn.payload for conn in conns)


@seeds(3)
def test_framer_answers_a_late_message(seed):
    bench = framer_bench.Bench(seed)
    whole = data_message(7, b"abcdefgh")
    halves = [whole[:3], whole[:8], whole[:11], whole + whole[:-1]]
    late = [Connection(half, fin=lambda c: c.got_fin) for half in halves]
    silent = Connection(b"", fin=lambda c: all(conn.released for conn in late))
    quick = [Connection(whole * 2) for _ in range(4)]
    bench.run([silent, *late, *quick], sweeping(bench.dut, 4000))
    for conn in late:
        assert conn.received.endswith(error_message(Status.TIMED_OUT))
        assert conn.got_fin
    assert late[3].received.startswith(quick[0].received[: len(quick[0].received) // 2])
    assert bench.counters["timed_out"] == len(late)
    assert silent.received == b""
    assert all(conn.ok for conn in (silent, *quick))
    assert all(error_message(Status.TIMED_OUT) not in conn.received for conn in quick)


@seeds(2)
def test_framer_waits_for_its_role(seed):
    """A job may take as long as it takes, with the next message half there."""
    bench = framer_bench.Bench(seed)
    whole = data_message(9, b"q" * 20)
    conn = Connection(whole + whole, chunk=7)
    bench.role.ready = False
    slow = {"until": 3000}

    async def hold(ctx):
        await ctx.tick().repeat(slow["until"])

    bench.run([conn], hold, sweeping(bench.dut, 5000))
    assert conn.ok
    assert bench.counters["timed_out"] == 0
    assert bench.counters["answers"] == 2
