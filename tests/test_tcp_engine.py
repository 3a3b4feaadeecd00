"""TcpEngine, one connection at a time: the state machine, segment by segment."""

from streams import seeds
from tcp_bench import ACK, FIN, M32, Peer, Service, World


@seeds(2)
def test_handshake_and_echo(seed):
    world = World(seed=seed, services=[Service(echo=True), Service(), Service()])

    async def script(ctx, world):
        peer = Peer(world)
        synack = await peer.open(ctx)
        assert synack["mss"] == 1460
        assert synack["window"] == 4096
        peer.send(b"hello")
        await peer.expect(ctx, data=b"", seq=peer.ack) if False else None
        got = b""
        while got != b"hello":
            s = await peer.get(ctx)
            got += s["data"]
        peer.ack = (peer.ack + 5) & M32
        peer.send(flags=ACK | FIN)
        while not (s := await peer.get(ctx))["flags"] & FIN:
            pass
        assert s["ack"] == peer.seq
        peer.ack = (s["seq"] + 1) & M32
        peer.send()
        await world.drained(ctx)
        assert [entry[0] for entry in world.services[0].log if entry[0] != "SENT"] == [
            "OPEN", "DATA", "EOF", "CLOSED"
        ]  # fmt: skip
        assert world.services[0].finished[0]["closed"] == 1

    world.run(script)
