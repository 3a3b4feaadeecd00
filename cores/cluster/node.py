"""A board's part in a cluster: callers and server around the router, LTL behind it.

::

    clients' jobs ── callers ─┐                 ┌─ LTL ── frames
                              ├─ elastic router ┤
    this board's role ─ server┘                 └
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import PacketArbiter, StreamDemux
from ..csr import CsrSignature, Register, RegisterBlock, counter, fields
from ..ltl.engine import Ltl
from ..ltl.registers import LTL_BLOCK
from ..memory import MemorySignature
from ..roles.contract import AnswerLayout, JobLayout
from ..roles.slot import RoleSlot
from ..router.adapter import FlitsToPackets, PacketsToFlits
from ..router.router import Router
from ..stream import PacketSignature, beat_layout
from .caller import Caller
from .contract import CALLS, REPLIES, entry, link_config, ltl_config
from .messages import AbortGuard
from .scheduler import FROM_PEERS, JobScheduler
from .server import Server

__all__ = ["ClusterNode", "cluster_block", "peer_block"]

#: Ports of the router.
AT_LTL, AT_CALLERS, AT_SERVER = range(3)
#: Where messages go that come in at a port on a virtual channel; there are no others.
WAYS = {
    (AT_LTL, CALLS): AT_SERVER,
    (AT_LTL, REPLIES): AT_CALLERS,
    (AT_CALLERS, CALLS): AT_LTL,
    (AT_SERVER, REPLIES): AT_LTL,
}


def _route(port, vc, dest):
    """Of :class:`~trebuchet.cores.router.router.Router`, which has no logic for other ways."""
    return (dest, vc) if WAYS.get((port, vc)) == dest else None


def cluster_block(peers):
    """Registers of a node with that many peers."""
    return RegisterBlock(
        "cluster",
        (
            Register(
                "enable",
                "rw",
                peers + 1,
                "bit 0: jobs of clients may go to this board's role; bit p: to peer p",
                1,
            ),
            counter("calls", "calls of peers that became jobs here"),
            counter("refused", "calls of peers answered without the role"),
            counter("dropped", "messages of calls that were dropped"),
        ),
        "jobs to and from other boards",
    )


def peer_block(peer):
    """Name of the slot of a peer's caller, and so of its registers."""
    return f"peer{peer}"


class ClusterNode(wiring.Component):
    """Shares the clients' jobs with peers, and takes theirs.

    =========================  ==========  =======================================================
    ``job`` ``answer``         In/Out      of this board's clients, as of
                                           :class:`~.scheduler.JobScheduler`
    ``role_job``               Out         this board's role; ``role_answer`` In
    ``mems``                   Out, array  memory ports: the callers', then the server's
    ``rx``                     In          Ethernet frames, whoever they are for; ``ready`` is 1
    ``tx``                     Out         Ethernet frames
    ``mac`` ``ip``             In          as of :class:`~trebuchet.cores.ltl.engine.Ltl`
    ``tick``                   In          1 for a cycle every millisecond
    ``irq``                    Out         a caller's slot wants attention
    ``csr_ltl`` …              In          ``csr_cluster`` and ``csr_peer1`` …, of the callers
    =========================  ==========  =======================================================

    Parameters: ``memory``, a :class:`~.server.ServerMemory`; ``width``, 32 or 64 bits, and
    ``tag_width`` of the memory ports.

    Messages: :mod:`~.contract`. What a peer's failure, a wrong reply or a role's reset lead to:
    :class:`~.caller.Caller`, :class:`~.server.Server`. A peer's caller is in a slot as any role is
    (:class:`~trebuchet.cores.roles.slot.RoleSlot`): it can be reset and switched off alone, and
    the CPU can call a peer's role with the slot's operand registers.
    """

    def __init__(self, memory, width=32, tag_width=2):
        self.memory, self.width, self.tag_width = memory, width, tag_width
        self.peers = peers = memory.peers
        self.callers = [Caller(p + 1, width, tag_width) for p in range(peers)]
        self.slots = [
            RoleSlot(caller, peer_block(caller.peer), width, tag_width) for caller in self.callers
        ]
        job, answer = stream.Signature(JobLayout), stream.Signature(AnswerLayout)
        self.blocks = {"ltl": LTL_BLOCK, "cluster": cluster_block(peers)}
        self.blocks |= {slot.block.name: slot.block for slot in self.slots}
        self.befores = []  # no ports: for the proof's invariants
        super().__init__(
            {
                "job": In(job),
                "answer": Out(answer),
                "role_job": Out(job),
                "role_answer": In(answer),
                "mems": Out(MemorySignature(width, tag_width)).array(peers + 1),
                "rx": In(PacketSignature(width)),
                "tx": Out(PacketSignature(width)),
                "mac": In(48),
                "ip": In(32),
                "tick": In(1),
                "irq": Out(1),
                **{f"csr_{name}": In(CsrSignature(block)) for name, block in self.blocks.items()},
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.share = share = JobScheduler(self.peers)
        m.submodules.server = server = Server(self.memory, FROM_PEERS, self.width, self.tag_width)
        for name in ("job", "answer", "role_job", "role_answer"):
            ours, theirs = wiring.flipped(getattr(self, name)), getattr(share, name)
            wiring.connect(m, ours, theirs)
        wiring.connect(m, server.job, share.peers_job)
        wiring.connect(m, share.peers_answer, server.answer)
        wiring.connect(m, server.mem, wiring.flipped(self.mems[self.peers]))
        calls, replies = self._callers(m, share)
        self._network(m, calls, replies, server)
        csr = self.csr_cluster
        m.d.comb += share.enable.eq(csr.enable)
        for name in ("calls", "refused", "dropped"):
            register = getattr(csr, name)
            m.d.sync += register.eq(register + getattr(server, name))
        return m

    def _callers(self, m, share):
        """The callers in their slots; their calls as one stream, the input of their replies."""
        m.submodules.calls = calls = PacketArbiter(self.width, self.peers)
        m.submodules.replies = replies = StreamDemux(beat_layout(self.width), self.peers)
        for k, (caller, slot) in enumerate(zip(self.callers, self.slots, strict=True)):
            m.submodules[slot.block.name] = slot
            m.submodules[f"fuse{k}"] = fuse = AbortGuard(self.width)
            wiring.connect(m, share.jobs[k], slot.job)
            wiring.connect(m, slot.answer, share.answers[k])
            wiring.connect(m, slot.mem, wiring.flipped(self.mems[k]))
            csr = getattr(self, f"csr_{slot.block.name}")
            wiring.connect(m, wiring.flipped(csr), slot.csr)
            # The caller's own ports pass its slot by, which resets it at any time.
            wiring.connect(m, caller.o, fuse.i)
            wiring.connect(m, replies.o[k], caller.i)
            wiring.connect(m, fuse.o, calls.i[k])
            m.d.comb += [
                caller.tick.eq(self.tick),
                fuse.cut.eq(caller.expired | fields(slot.csr, "state").resetting),
            ]
        m.d.comb += self.irq.eq(Cat(slot.irq for slot in self.slots).any())
        return calls, replies

    def _network(self, m, calls, replies, server):
        link = link_config(self.width)
        m.submodules.router = router = Router(3, link, _route)
        m.submodules.ltl = ltl = Ltl(ltl_config(self.width, self.peers))
        sends = [PacketsToFlits(link) for _ in range(3)]
        takes = [FlitsToPackets(link) for _ in range(3)]
        for port, (send, take) in enumerate(zip(sends, takes, strict=True)):
            m.submodules[f"send{port}"], m.submodules[f"take{port}"] = send, take
            wiring.connect(m, send.o, router.i[port])
            wiring.connect(m, router.o[port], take.i)
        wiring.connect(m, calls.o, sends[AT_CALLERS].i[CALLS])
        wiring.connect(m, server.o, sends[AT_SERVER].i[REPLIES])
        wiring.connect(m, takes[AT_SERVER].o[CALLS], server.i)
        self._sort_replies(m, takes[AT_CALLERS].o[REPLIES], replies)
        m.d.comb += [sends[port].dest[vc].eq(to) for (port, vc), to in WAYS.items()]
        m.d.comb += [
            # Nothing is sent there: what should come all the same is lost, and holds up nobody.
            takes[AT_CALLERS].o[CALLS].ready.eq(1),
            takes[AT_SERVER].o[REPLIES].ready.eq(1),
        ]
        for vc in (CALLS, REPLIES):
            self._to_ltl(m, takes[AT_LTL].o[vc], ltl.send[vc], vc)
            self._from_ltl(m, ltl.deliver[vc], sends[AT_LTL].i[vc])
        wiring.connect(m, wiring.flipped(self.rx), ltl.rx)
        wiring.connect(m, ltl.tx, wiring.flipped(self.tx))
        wiring.connect(m, wiring.flipped(self.csr_ltl), ltl.csr)
        m.d.comb += [ltl.mac.eq(self.mac), ltl.ip.eq(self.ip)]

    def _held(self, m, packet):
        """``peer`` of the packet's header, from its first beat to its last."""
        before, peer = Signal(8), Signal(8)
        self.befores.append(before)
        m.d.comb += peer.eq(before)
        with m.If(packet.payload.first):
            m.d.comb += peer.eq(packet.payload.data[:8])
        with m.If(packet.valid & packet.ready):
            m.d.sync += before.eq(peer)
        return peer

    def _sort_replies(self, m, packet, replies):
        wiring.connect(m, packet, replies.i)
        peer = self._held(m, packet)
        # One that is for nobody is swallowed.
        m.d.comb += replies.select.eq(peer - 1)
        with m.If((peer == 0) | (peer > self.peers)):
            m.d.comb += [packet.ready.eq(1), replies.i.valid.eq(0)]

    def _to_ltl(self, m, packet, message, vc):
        peer = self._held(m, packet)
        m.d.comb += [message.valid.eq(packet.valid), packet.ready.eq(message.ready)]
        for name in ("data", "empty", "first", "last", "error"):
            m.d.comb += message.payload[name].eq(packet.payload[name])
        # A peer that does not exist has entry 0, which is never open: LTL counts and drops.
        known = Mux(peer <= self.peers, peer, 0)
        m.d.comb += message.payload.connection.eq(entry(known, vc))

    def _from_ltl(self, m, message, packet):
        m.d.comb += [packet.valid.eq(message.valid), message.ready.eq(packet.ready)]
        for name in ("data", "empty", "first", "last", "error"):
            m.d.comb += packet.payload[name].eq(message.payload[name])
        with m.If(message.payload.first):
            m.d.comb += packet.payload.data[:8].eq(message.payload.connection >> 1)
