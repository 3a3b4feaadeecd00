"""The tops with a TCP engine that heeds ICMP errors: frames in, frames out."""

from dataclasses import replace

import pytest
from amaranth.hdl import Fragment
from net_frames import MAC, OUR_IP, PEER_IP, icmp_error, tcp_frame
from scapy.layers.inet import TCP
from scapy.layers.l2 import Ether
from streams import MemoryResponder, packet_get, packet_put, run
from trebuchet.cores.shell import Shell
from trebuchet.cores.shell_config import ShellConfig
from trebuchet.cores.tcp.config import TINY
from trebuchet.models.net import with_tag, without_tag
from trebuchet.models.plan import Plan
from trebuchet.sim.toe import PORTS, Toe

CONFIG = replace(TINY, sessions=4, segment_log2=12, icmp=True)
NUMBER = int.from_bytes(MAC, "little")
PAGE = bytes(range(256)) * 4
PORT = 8080


def toe(config):
    return Toe(replace(config, ports=PORTS), NUMBER, OUR_IP, config.pool_size), config.pool_size


def shell(config):
    top = ShellConfig(tcp=config, plan=Plan())
    return Shell(top), top.memory["page"].base


TAGGED = replace(CONFIG, vlan=True)
LINES = {
    "toe-plain": (toe, CONFIG, None),
    "shell-tagged64": (shell, replace(TAGGED, width=64), 0xFFFF),
}
MORE_LINES = {
    "toe-untagged": (toe, TAGGED, None),
    "toe-tagged": (toe, TAGGED, 0x6123),
    "toe-tagged64": (toe, replace(TAGGED, width=64), 0xFFFF),
    "shell-plain": (shell, CONFIG, None),
    "shell-untagged": (shell, TAGGED, None),
    "shell-tagged": (shell, TAGGED, 0x6123),
}


@pytest.mark.parametrize(
    ("make", "config", "tag"),
    [
        *(pytest.param(*line, id=name) for name, line in LINES.items()),
        *(
            pytest.param(*line, id=name, marks=pytest.mark.nightly)
            for name, line in MORE_LINES.items()
        ),
    ],
)
def test_a_page_over_a_path_with_a_small_mtu(make, config, tag):
    """Without VLAN tags, and in a VLAN: all frames of a session have the tag of its SYN."""
    dut, page = make(config)
    memory = bytearray(1 << (page + 1024).bit_length())
    memory[page : page + 1024] = PAGE

    async def put(ctx, frame):
        await packet_put(ctx, dut.rx, with_tag(frame, tag))

    async def get(ctx):
        frame, there = without_tag((await packet_get(ctx, dut.tx))[0])
        assert there == tag
        return Ether(frame)[TCP]

    async def bench(ctx):
        if make is shell:
            for name, value in (("enable", 1), ("mac", NUMBER), ("ip", OUR_IP)):
                ctx.set(getattr(dut.csr_shell, name), value)
            ctx.set(dut.other_rx.ready, 1)
        await ctx.tick().repeat(200)
        ends = {"sport": 40000, "dport": PORT}
        await put(ctx, tcp_frame(flags=2, seq=99, tcp_options=b"\x02\x04\x05\xb4", **ends))
        synack = await get(ctx)
        ack = synack.seq + 1
        await put(ctx, tcp_frame(flags=0x10, seq=100, ack=ack, **ends))
        await put(ctx, tcp_frame(b"GET", flags=0x18, seq=100, ack=ack, **ends))
        while len((sent := await get(ctx)).payload) < 1024:
            pass
        assert (sent.seq, bytes(sent.payload)) == (ack, PAGE)
        quote = {"sport": PORT, "dport": 40000, "dst": PEER_IP}
        await put(ctx, icmp_error(4, 640, seq=ack - 1, **quote))  # forged
        await put(ctx, icmp_error(4, 640, seq=ack, **quote))
        again = await get(ctx)
        assert (again.seq, bytes(again.payload)) == (ack, PAGE[:600])
        await put(ctx, tcp_frame(flags=0x10, seq=103, ack=ack + 600, **ends))
        assert bytes((await get(ctx)).payload) == PAGE[600:]
        assert ctx.get(dut.csr_icmp.notices) == 2
        assert (ctx.get(dut.csr_tcp.icmp_mss), ctx.get(dut.csr_tcp.icmp_ignored)) == (1, 1)

    run(dut, bench, MemoryResponder(dut.mem, memory), limit=20_000)


@pytest.mark.parametrize("make", [toe, shell])
def test_without_icmp_the_tops_have_no_registers_of_it(make):
    dut, _ = make(replace(CONFIG, icmp=False))
    Fragment.get(dut, None)
    assert "csr_icmp" not in dut.signature.members
