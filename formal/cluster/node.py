"""Proof of ``ClusterNode`` in ``cores/cluster/node.py``: what lies between its parts.

All parts are hollow (:mod:`~trebuchet.formal.kit.parts`), so this holds for any parts: every
stream, memory port and register block of one goes to the one that the data sheet's picture says,
and to no other; calls go from the callers to LTL and from LTL to the server, replies from the
server to LTL and from LTL to the callers, each on its channel; a message for LTL has, from its
first beat to its last, the entry ``2 * peer + channel`` of the peer in its header, that of no peer
if there is no such; one from LTL has in its header the peer by whose entry it came, and all else as
it was; a reply goes to the caller of its peer, one for nobody is swallowed whole; what a caller
that has given up, or is being reset, still sends is cut; counters count. And LTL has the entries,
slots and store that its configuration must have for that.

Not proved: the parts, each of which has proofs of its own; behaviour under a reset while running.
"""

from amaranth.hdl import Assert, C, Cat, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib.wiring import In
from trebuchet.cores.cluster.server import ServerMemory

from ..kit.parts import Opened, hollow, moves, same, same_memory
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]

PEERS = 2
MEMORY = ServerMemory(0, PEERS, 8, 8)
CALLS, REPLIES = 0, 1
LTL, CALLERS, SERVER = range(3)  # ports of the router
PARTS = (
    *("JobScheduler", "Server", "AbortGuard", "Router", "Ltl", "PacketsToFlits", "FlitsToPackets"),
    *("PacketArbiter", "StreamDemux"),
)


def same_registers(m, ours, theirs):
    """A register block of the core and that of a part are one."""
    mine = dict((path, port) for path, _, port in ours.signature.flatten(ours))
    other = dict((path, port) for path, _, port in theirs.signature.flatten(theirs))
    m.d.comb += [Assert(mine[path] == other[path]) for path in other]


class NodeProof(Elaboratable):
    def __init__(self, cores, dut):
        self.cores, self.dut = cores, dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        for slot in dut.slots:
            hollow(slot)
        core = Opened(self.cores, dut, platform, hollowed=PARTS)
        m.submodules.dut = core.fragment
        for k, caller in enumerate(dut.callers):
            m.submodules[f"caller{k}"] = hollow(caller)
        for _, member, port in dut.signature.flatten(dut):
            if member.flow is In and len(Value.cast(port)):
                free(m, port)
        share, server, router, ltl = (
            core.part(n) for n in ("JobScheduler", "Server", "Router", "Ltl")
        )
        sends, takes = core.made["PacketsToFlits"], core.made["FlitsToPackets"]
        same(m, dut.job, share.job)
        same(m, share.answer, dut.answer)
        same(m, share.role_job, dut.role_job)
        same(m, dut.role_answer, share.role_answer)
        same(m, server.job, share.peers_job)
        same(m, share.peers_answer, server.answer)
        same_memory(m, server.mem, dut.mems[PEERS])
        self.befores = iter(dut.befores)
        self._callers(m, core, share)
        self._router(m, router, sends, takes)
        same(m, core.part("PacketArbiter").o, sends[CALLERS].i[CALLS])
        same(m, server.o, sends[SERVER].i[REPLIES])
        same(m, takes[SERVER].o[CALLS], server.i)
        self._replies(m, takes[CALLERS].o[REPLIES], core.part("StreamDemux"))
        for vc in (CALLS, REPLIES):
            self._to_ltl(m, takes[LTL].o[vc], ltl.send[vc], vc)
            self._from_ltl(m, ltl.deliver[vc], sends[LTL].i[vc])
        self._registers(m, share, server, ltl)
        self._sizes(m, ltl.config, router.config)
        return m

    def _callers(self, m, core, share):
        dut, replies, calls = self.dut, core.part("StreamDemux"), core.part("PacketArbiter")
        pairs = zip(dut.callers, dut.slots, core.made["AbortGuard"], strict=True)
        for k, (caller, slot, fuse) in enumerate(pairs):
            same(m, share.jobs[k], slot.job)
            same(m, slot.answer, share.answers[k])
            same_memory(m, slot.mem, dut.mems[k])
            same(m, caller.o, fuse.i)
            same(m, fuse.o, calls.i[k])
            same(m, replies.o[k], caller.i)
            same_registers(m, getattr(dut, f"csr_peer{k + 1}"), slot.csr)
            m.d.comb += [
                Assert(C(caller.peer) == k + 1),
                Assert(C(slot.role is caller)),
                Assert(caller.tick == dut.tick),
                Assert(fuse.cut == (caller.expired | slot.csr.state[1])),
                Cover(fuse.cut & ~caller.expired),
            ]
        m.d.comb += Assert(dut.irq == Cat(slot.irq for slot in dut.slots).any())

    def _router(self, m, router, sends, takes):
        for port, (send, take) in enumerate(zip(sends, takes, strict=True)):
            for ours, theirs in ((send.o, router.i[port]), (router.o[port], take.i)):
                same_registers(m, ours, theirs)
        # And the router has these ways only, each on its channel.
        ways = {(CALLERS, CALLS): LTL, (SERVER, REPLIES): LTL}
        ways |= {(LTL, CALLS): SERVER, (LTL, REPLIES): CALLERS}
        for port, channels in enumerate(router.table):
            for vc, row in enumerate(channels):
                for dest, way in enumerate(row):
                    wanted = (dest, vc) if ways.get((port, vc)) == dest else None
                    m.d.comb += Assert(C(way == wanted))
        m.d.comb += [
            Assert(sends[CALLERS].dest[CALLS] == LTL),
            Assert(sends[SERVER].dest[REPLIES] == LTL),
            Assert(sends[LTL].dest[CALLS] == SERVER),
            Assert(sends[LTL].dest[REPLIES] == CALLERS),
            Assert(~sends[CALLERS].i[REPLIES].valid),
            Assert(~sends[SERVER].i[CALLS].valid),
            Assert(takes[CALLERS].o[CALLS].ready),
            Assert(takes[SERVER].o[REPLIES].ready),
        ]

    def _peer(self, m, packet, name):
        """The first byte of the packet, on all of its beats."""
        began, peer = Signal(8, name=f"{name}_began"), Signal(8, name=f"{name}_peer")
        m.d.comb += peer.eq(Mux(packet.payload.first, packet.payload.data[:8], began))
        with m.If(moves(packet) & packet.payload.first):
            m.d.sync += began.eq(peer)
        m.d.comb += Assert(next(self.befores) == began)  # an invariant
        return peer

    def _replies(self, m, packet, replies):
        peer, known = self._peer(m, packet, "reply"), Signal()
        m.d.comb += known.eq((peer != 0) & (peer <= PEERS))
        m.d.comb += Assert(replies.i.valid == (packet.valid & known))
        with m.If(packet.valid):
            m.d.comb += Assert(packet.ready == (replies.i.ready | ~known))
        with m.If(replies.i.valid):
            theirs, ours = Value.cast(replies.i.payload), Value.cast(packet.payload)
            m.d.comb += [Assert(theirs == ours), Assert(replies.select + 1 == peer)]
        m.d.comb += Cover(moves(packet) & ~packet.payload.first & (peer == 2))
        m.d.comb += Cover(moves(packet) & ~known & ~packet.payload.first)

    def _to_ltl(self, m, packet, message, vc):
        peer = self._peer(m, packet, f"to_ltl{vc}")
        beat, theirs = packet.payload, message.payload
        m.d.comb += Assert(message.valid == packet.valid)
        with m.If(packet.valid):
            m.d.comb += Assert(packet.ready == message.ready)
            m.d.comb += [Assert(theirs[name] == beat[name]) for name, _ in beat.shape()]
            m.d.comb += Assert(theirs.connection == Mux(peer <= PEERS, 2 * peer + vc, vc))
        m.d.comb += Cover(moves(message) & ~beat.first & (theirs.connection == 4 + vc))

    def _from_ltl(self, m, message, packet):
        beat, theirs = packet.payload, message.payload
        m.d.comb += [Assert(packet.valid == message.valid), Assert(message.ready == packet.ready)]
        with m.If(packet.valid):
            names = [name for name, _ in beat.shape() if name != "data"]
            m.d.comb += [Assert(beat[name] == theirs[name]) for name in names]
            m.d.comb += Assert(beat.data[8:] == theirs.data[8:])
            # Entry 2 * peer + channel.
            byte = Mux(theirs.first, theirs.connection[1:], theirs.data[:8])
            m.d.comb += Assert(beat.data[:8] == byte)

    def _registers(self, m, share, server, ltl):
        dut = self.dut
        csr = dut.csr_cluster
        m.d.comb += Assert(share.enable == csr.enable)
        for name in ("calls", "refused", "dropped"):
            count = Signal(32, name=f"{name}_count")
            m.d.sync += count.eq(count + getattr(server, name))
            m.d.comb += Assert(getattr(csr, name) == count)
        same(m, dut.rx, ltl.rx)
        same(m, ltl.tx, dut.tx)
        same_registers(m, dut.csr_ltl, ltl.csr)
        m.d.comb += [Assert(ltl.mac == dut.mac), Assert(ltl.ip == dut.ip)]

    def _sizes(self, m, config, link):
        # A message of 1016 bytes is 254 beats; four of them may be on the way for each peer.
        held = 4 * PEERS * 254
        sizes = (
            (config.connections, 2 * PEERS + 2),
            (config.vcs, 2),
            (config.slots, 8 * PEERS),
            (config.window, 4),
            (config.max_message, 1016),
            (config.width, 32),
            (link.vcs, 2),
            (link.flit_width, 32),
            (link.user_width, 3),
            (link.buffer_flits, 8),
            (link.reserved, 4),
            (int(held <= config.buffer_beats < 2 * held), 1),
        )
        m.d.comb += [Assert(C(size, 32) == wanted) for size, wanted in sizes]


MUTANTS = (
    Mutant("peer_too_many", "peer <= self.peers, peer, 0", "peer <= self.peers + 1, peer, 0", 4),
    Mutant("entry_for_peer", "message.payload.connection >> 1", "message.payload.connection", 4),
    Mutant("forgets_the_peer", "m.d.sync += before.eq(peer)", "m.d.sync += before.eq(0)", 4),
    Mutant("next_caller", "replies.select.eq(peer - 1)", "replies.select.eq(peer)", 4),
    Mutant(
        "any_way",
        "(dest, vc) if WAYS.get((port, vc)) == dest else None",
        "(dest, vc) if dest < 3 else None",
        4,
    ),
    Mutant(
        "sends_after_reset",
        "caller.expired | fields(slot.csr, 'state').resetting",
        "caller.expired",
        4,
    ),
    Mutant(
        "entry_of_the_next",
        "return 2 * peer + vc",
        "return 2 * (peer - 1) + vc",
        where="trebuchet.cores.cluster.contract",
        depth=4,
    ),
)

PROOFS = (
    Proof(
        name="cluster_node",
        core="cores.cluster.node.ClusterNode, 2 peers, 32 bits, its parts hollow",
        says="messages take the entry of their peer and channel; all else is joined as drawn",
        module="trebuchet.cores.cluster.node",
        build=lambda cores: NodeProof(cores, cores.ClusterNode(MEMORY)),
        depth=3,
        cover_depth=8,
        mutants=MUTANTS,
        assumes="nothing",
        not_proved="the parts, which have proofs of their own; a reset while running",
    ),
)
