"""``RecordLoader`` and ``PairPacker``: whole packets of pairs, and parameters."""

import pytest
from streams import make_rng, packet_get, run, stream_put
from trebuchet.cores.roles.ecg.load import PairPacker, RecordLoader
from trebuchet.models.ecg.record import KEPT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("width", [32, 64, 128])
def test_packer(width):
    """Pairs in, whole packets out, for every number of pairs at the end."""
    rng = make_rng(0, f"packer {width}")
    dut = PairPacker(width)
    packets = [rng.randbytes(4 * n) for n in range(1, 10)]

    async def put(ctx):
        for packet in packets:
            for at in range(0, len(packet), 4):
                values = [
                    int.from_bytes(packet[at + i : at + i + 2], "little", signed=True)
                    for i in (0, 2)
                ]
                pair = {"even": values[0], "odd": values[1], "last": at + 4 == len(packet)}
                await stream_put(ctx, dut.i, pair, rng=rng)

    async def get(ctx):
        for packet in packets:
            assert await packet_get(ctx, dut.o, rng=make_rng(0, "get")) == (packet, False)

    run(dut, put, get, limit=2000)


def test_bad_parameters():
    for options, message in [
        ({"scratch": 0x100}, "Scratch memory must begin at a multiple of 2048, not 256"),
        ({"scratch": 0, "tail": 30}, "Tail must be a multiple of 4, 32 to 700, not 30"),
        ({"scratch": 0, "tail": KEPT}, "Tail must be a multiple of 4, 32 to 700, not 704"),
    ]:
        with pytest.raises(ValueError, match=message):
            RecordLoader(sessions=4, **options)
