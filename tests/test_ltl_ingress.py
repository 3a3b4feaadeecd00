"""``Ingress`` at the sizes that boards have."""

from part_sizes import at_sizes
from streams import run, stream_get, stream_put
from test_sizes_net import config_of
from trebuchet.cores.ltl.ingress import Ingress


@at_sizes("ltl.ingress.Ingress")
def test_ingress(size):
    """Messages of the largest size fill all slots; each lies in its own, with its connection."""
    config = config_of(size)
    dut, n = Ingress(config), config.bytes
    beats = -(-config.max_message // n)
    written = {}

    async def watch(ctx):
        async for _, _, en, addr, data in ctx.tick().sample(dut.en, dut.addr, dut.data):
            if en:
                written[addr] = data

    watch.background = True

    async def bench(ctx):
        connection, slots = config.connections - 1, []
        for message in range(config.slots):
            vc = message % config.vcs
            for k in range(beats):
                beat = {"data": message << 16 | k, "first": k == 0, "last": k == beats - 1}
                beat["empty"] = (-config.max_message) % n if beat["last"] else 0
                await stream_put(ctx, dut.i[vc], beat | {"connection": connection})
            offer = await stream_get(ctx, dut.commit[vc])
            assert offer.connection == connection
            assert offer.stored.length == config.max_message
            slots.append(offer.stored.slot)
        assert sorted(slots) == list(range(config.slots))
        assert ctx.get(dut.used) == config.slots
        low = config.slot_bits
        for message, slot in enumerate(slots):
            last = slot << low | beats - 1
            assert written[last] & 0xFFFF_FFFF == message << 16 | beats - 1
        assert len(written) == config.slots * beats

    run(dut, bench, watch, limit=3 * config.slots * beats + 1000)
