"""One body, three places: as a memory role, in a stream, and in-line in the bridge."""

import pytest
from bridge_bench import drain, feed
from role_bench import Job, RoleBench, Write
from streams import make_rng, run, seeds
from trebuchet.cores.bridge.bridge import Bridge
from trebuchet.cores.engines.crc32c.engine import Crc32cEngine
from trebuchet.cores.engines.stage import EngineStage
from trebuchet.cores.roles.packet_role import PacketRole
from trebuchet.models import crc32c
from trebuchet.models.status import Status

SIZES = [20, 21, 22, 23, 24, 59, 60, 64, 75, 76]


def packets(rng, check):
    """Packets that fit all three places; to be checked, half of them with the right CRC."""
    made = [rng.randbytes(size) for size in SIZES]
    if check:
        made = [crc32c.result(p[:-4])[0] if rng.random() < 0.5 else p for p in made]
    rng.shuffle(made)
    return made


def as_role(given, check, seed):
    """Results of the jobs; None where it was answered ``BAD_DATA``."""
    role = PacketRole(Crc32cEngine(32), 32)
    jobs = [Job(packet, room=100) for packet in given]
    answers = RoleBench(role, seed=seed).run([Write("check", check), *jobs], limit=20_000)
    assert {a.status for a in answers} <= {Status.OK, Status.BAD_DATA}
    return [a.result if a.status == Status.OK else None for a in answers]


def in_a_stream(given, check, seed):
    dut, got = EngineStage(Crc32cEngine(32, check)), []
    put = feed(dut.i, [(p, False) for p in given], make_rng(seed, "put"))
    get = drain(dut.o, got, len(given), make_rng(seed, "get"))
    run(dut, put, get, limit=10_000, seed=seed)
    return [None if error else packet for packet, error in got]


def in_the_bridge(given, check, seed):
    """Frames that were dropped are missing, not None."""
    dut, got = (
        Bridge(
            32,
            store_and_forward=True,
            shortest=20,
            longest=80,
            engines={"inbound": ("crc32c", Crc32cEngine(32, check))},
        ),
        [],
    )

    async def enable(ctx):
        ctx.set(dut.csr.enable, 1)
        ctx.set(dut.csr_inbound.enable, 1)
        ctx.set(dut.csr_inbound.check, check)

    count = sum(not crc32c.result(p, check=check)[1] for p in given)
    put = feed(dut.rx[0], [(p, False) for p in given], make_rng(seed, "put"))
    run(dut, enable, put, drain(dut.tx[1], got, count, None), limit=10_000, seed=seed)
    return [packet for packet, _ in got]


@pytest.mark.parametrize("check", [False, True])
@seeds(1)
def test_all_three_agree(check, seed):
    given = packets(make_rng(seed, "packets"), check)
    expected = [crc32c.result(packet, check=check) for packet in given]
    expected = [None if error else packet for packet, error in expected]
    assert check == (None in expected)
    assert as_role(given, check, seed) == expected
    assert in_a_stream(given, check, seed) == expected
    good = [packet for packet in expected if packet is not None]
    assert in_the_bridge(given, check, seed) == good
