"""Sessions in VLANs: what goes out has the tag of the segment that made the session."""

from dataclasses import replace

import pytest
from net_frames import tag_of
from streams import seeds
from tcp_bench import ACK, RST, SMALL, SYN, Peer, World
from test_tcp_active import connect, syn_ack, syn_of

VLAN = replace(SMALL, vlan=True)
EXTERNAL = replace(VLAN, cache=4, wheel=128)
KINDS = pytest.mark.parametrize("config", [VLAN, EXTERNAL], ids=["ram", "cache"])
#: The second takes three times as long.
KINDS_BY_TIER = pytest.mark.parametrize(
    "config",
    [pytest.param(VLAN, id="ram"), pytest.param(EXTERNAL, id="cache", marks=pytest.mark.nightly)],
)


class Member(Peer):
    """A peer whose frames have a tag; all that it gets must have it, too."""

    def __init__(self, world, tci, **more):
        super().__init__(world, **more)
        self.vlan = tag_of(tci)

    def raw(self, *place, **more):
        super().raw(*place, **({"vlan": self.vlan} | more))

    async def get(self, ctx, **more):
        segment = await super().get(ctx, **more)
        assert segment["vlan"] == self.vlan, f"tag of {segment}"
        return segment


@KINDS_BY_TIER
@seeds(2)
def test_each_session_keeps_its_tag(config, seed):
    """More sessions than the cache has; the tag of a later segment changes nothing."""

    async def script(ctx, world):
        peers = [
            Member(world, tci, rport=4000 + k)
            for k, tci in enumerate((None, 0, 5, 0xFFFF, 0xE005, None))
        ]
        for peer in peers:
            await peer.open(ctx)
        for peer in (*peers, *reversed(peers)):
            peer.send(b"hello", vlan=tag_of(99))
            await peer.expect(ctx, ack=peer.seq)
        for peer in peers:
            peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    World(config, seed=seed).run(script, limit=200_000)


@KINDS
def test_resets_go_where_the_segment_came_from(config):
    """No session, so no peer is known: the RST has the segment's tag."""

    async def script(ctx, world):
        for tci in (7, None, 0x8000):
            peer = Member(world, tci, port=12345)
            peer.syn()
            await peer.expect(ctx, flags=RST | ACK)
            peer.raw(5, ack=10)
            assert (await peer.get(ctx))["flags"] == RST

    World(config).run(script)


@KINDS_BY_TIER
@pytest.mark.parametrize("tci", [None, 0x4321])
def test_a_connection_is_opened_in_a_vlan(config, tci):
    async def script(ctx, world):
        ctx.set(world.dut.csr.connect_vlan, tag_of(tci))
        peer = await connect(ctx, world)
        syn = await syn_of(ctx, peer)
        syn_ack(peer, syn)
        acknowledges = await peer.get(ctx)
        assert (syn["flags"], acknowledges["flags"]) == (SYN, ACK)
        assert syn["vlan"] == acknowledges["vlan"] == tag_of(tci)

    World(replace(config, active=True)).run(script)
