"""Two boards' nodes joined by a cable, or a caller and a server without a network between them."""

from types import SimpleNamespace

from amaranth import Module, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from ltl_bench import IPS, MACS, command
from streams import MemoryResponder, make_rng, stream_get, stream_put
from trebuchet.cores.cluster.caller import Caller
from trebuchet.cores.cluster.contract import CALLS, REPLIES, entry
from trebuchet.cores.cluster.messages import AbortGuard
from trebuchet.cores.cluster.node import ClusterNode
from trebuchet.cores.cluster.server import Server, ServerMemory
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.roles.loopback.role import LoopbackRole
from trebuchet.cores.roles.slot import RoleSlot

OPERAND_LOG2, RESULT_LOG2 = 13, 13
#: Clients' operands and results from here on; below are the server's buffers.
CLIENTS = 1 << 16
RING = 1 << 13


class Direct(Elaboratable):
    """A caller in its slot, a server, a role; ``cut`` = 1 loses what they send, ``hold`` holds it.

    It has ``peer`` 1 at both ends. ``job`` and ``answer`` are the client's.
    """

    def __init__(self, width=32, tag_width=2):
        self.caller = Caller(1, width, tag_width)
        self.slot = RoleSlot(self.caller, "peer1", width, tag_width)
        self.server = Server(ServerMemory(0, 2, OPERAND_LOG2, RESULT_LOG2), 1, width, tag_width)
        self.role = RoleSlot(LoopbackRole(width, tag_width), "loopback", width, tag_width)
        self.fuse = AbortGuard(width)
        self.memory, self.memories = bytearray(1 << 18), [bytearray(1 << 18), bytearray(1 << 18)]
        self.job, self.answer = self.slot.job, self.slot.answer
        self.cut, self.hold = Signal(), Signal()
        self.counts = {name: Signal(16, name=name) for name in ("calls", "refused", "dropped")}

    def elaborate(self, platform):
        m = Module()
        m.submodules.slot, m.submodules.server, m.submodules.role = (
            self.slot,
            self.server,
            self.role,
        )
        m.submodules.fuse = fuse = self.fuse
        wiring.connect(m, self.caller.o, fuse.i)
        m.d.comb += fuse.cut.eq(self.caller.expired | self.slot.csr.state[1])
        for a, b in ((fuse.o, self.server.i), (self.server.o, self.caller.i)):
            # Lost whole: from a packet's first beat on.
            lost, held = Signal(), Signal()
            m.d.comb += lost.eq(held)
            with m.If(a.payload.first):
                m.d.comb += lost.eq(self.cut)
            with m.If(a.valid & a.ready):
                m.d.sync += held.eq(lost)
            m.d.comb += [
                b.valid.eq(a.valid & ~lost & ~self.hold),
                b.payload.eq(a.payload),
                a.ready.eq((b.ready | lost) & ~self.hold),
            ]
        wiring.connect(m, self.server.job, self.role.job)
        wiring.connect(m, self.role.answer, self.server.answer)
        for name, count in self.counts.items():
            m.d.sync += count.eq(count + getattr(self.server, name))
        return m

    def responders(self, seed):
        """The memories of all ports, for :func:`streams.run`."""
        ports = ((self.slot.mem, 0), (self.server.mem, 1), (self.role.mem, 1))
        return [
            MemoryResponder(port, self.memories[k], rng=make_rng(seed, f"memory{p}"))
            for p, (port, k) in enumerate(ports)
        ]


class Boards(Elaboratable):
    """Two nodes, tx of each to rx of the other."""

    def __init__(self, width=32, tag_width=2):
        memory = ServerMemory(0, 1, OPERAND_LOG2, RESULT_LOG2)
        self.nodes = [ClusterNode(memory, width, tag_width) for _ in range(2)]
        self.slots = [
            RoleSlot(LoopbackRole(width, tag_width), "loopback", width, tag_width) for _ in range(2)
        ]
        self.memories = [bytearray(1 << 18) for _ in range(2)]

    def elaborate(self, platform):
        m = Module()
        for k, (node, slot) in enumerate(zip(self.nodes, self.slots, strict=True)):
            m.submodules[f"node{k}"], m.submodules[f"slot{k}"] = node, slot
            wiring.connect(m, node.role_job, slot.job)
            wiring.connect(m, slot.answer, node.role_answer)
            wiring.connect(m, node.tx, self.nodes[1 - k].rx)
        return m

    def responders(self, seed):
        """The memories of all ports, for :func:`streams.run`."""
        found = []
        for k, (node, slot) in enumerate(zip(self.nodes, self.slots, strict=True)):
            ports = [*(node.mems[p] for p in range(node.peers + 1)), slot.mem]
            found += [
                MemoryResponder(port, self.memories[k], rng=make_rng(seed, f"memory{k}/{p}"))
                for p, port in enumerate(ports)
            ]
        return found


def ltl_of(node):
    """As :mod:`ltl_bench` wants an engine."""
    return SimpleNamespace(csr=node.csr_ltl, mac=node.mac, ip=node.ip)


async def join(ctx, boards, which, *, theirs=1, enable=0b10):
    """Open board ``which``'s end of the connections with the other, its peer number 1."""
    node = boards.nodes[which]
    end = ltl_of(node)
    ctx.set(node.mac, int.from_bytes(MACS[which], "little"))
    ctx.set(node.ip, IPS[which])
    for name, value in {"tick_cycles": 10, "rto": 200, "retries": 3}.items():
        ctx.set(getattr(node.csr_ltl, name), value)
    for vc in (CALLS, REPLIES):
        fields = {"peer": 1 - which, "peer_connection": entry(theirs, vc), "vc": vc}
        await command(ctx, end, entry(1, vc), receive=True, **fields)
        await command(ctx, end, entry(1, vc), **fields)
    ctx.set(node.csr_ltl.enable, 1)
    ctx.set(node.csr_cluster.enable, enable)
    await ctx.tick().repeat(3)  # the dispatcher's choice is a register


async def call(
    ctx, end, memory, ident, operand, *, rng=None, kind=JobKind.DATA, room=RING, length=None
):
    """A client's job at ``end.job``; returns ``(status, result)``. One at a time a memory."""
    offset = 0 if rng is None else rng.randrange(RING)
    for i, byte in enumerate(operand):
        memory[CLIENTS + (offset + i) % RING] = byte
    result = CLIENTS + RING
    memory[result : result + RING] = bytes(RING)
    job = {
        "kind": kind,
        "first": 1,
        "source": 0,
        "session": 77,
        "id": ident,
        "base": CLIENTS,
        "offset": offset,
        "ring_log2": RING.bit_length() - 1,
        "length": len(operand) if length is None else length,
        "result": result,
        "room": room,
    }
    await stream_put(ctx, end.job, job, rng=rng)
    answer = await stream_get(ctx, end.answer, rng=rng)
    assert (answer.source, answer.session, answer.id) == (0, 77, ident)
    return int(answer.status), bytes(memory[result : result + answer.length])
