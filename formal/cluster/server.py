"""Proof of ``Server`` in ``cores/cluster/server.py``, whatever peers, role and memory do.

The transfer is hollow (:mod:`~trebuchet.formal.kit.parts`; ``cluster_transfer`` proves it). A model
written from the data sheet runs in lockstep, by induction. What a peer has going on is told of one
peer, which the solver picks, so it holds for each. It says: a message of no peer or out of its
place is dropped, and counted; any other is stored in its peer's operand area and nowhere else, and
not before the peer's last call is replied to, so no operand is written that a role may be reading,
and no result is overwritten that is being sent; a call that is too large or of another kind is
refused with its status, any other becomes one job with its length, number and areas; each call is
replied to once, with its number and the status and length of its answer; the areas of peers are
disjoint, and lie within the server's memory.

Not proved: a bound in cycles, which depends on the role and the transfer; behaviour under a reset
while running; other numbers of peers and sizes than those named.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, C, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.models.status import Status

from ..kit.parts import Opened, moves, same, same_memory
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

SOURCE, DATA = 1, 0
STEP = 63  # a message has 1008 bytes, in units of 16
BASE, PEERS, OPERAND_LOG2, RESULT_LOG2 = 0x4400, 3, 9, 10
#: Operands end at 0x4A00; results lie behind all of them, each at a multiple of its size.
RESULTS, END = 0x4C00, 0x5800
RECEIVE = ("IDLE", "LOOK", "STORE", "STORED", "JUDGE")
REPLY = ("IDLE", "CALL", "SEND")


def _index(peer):
    """Where the core's tables have a peer."""
    return peer[: PEERS.bit_length()]


def _may_be(cores, peers):
    """Whether a server can have so many peers."""
    try:
        return bool(cores.check_peers(peers))
    except ValueError:
        return False


class ServerProof(Elaboratable):
    def __init__(self, cores, dut):
        self.cores, self.dut = cores, dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        m.d.comb += Assert(C(BASE + dut.memory.size, 32) == END)
        # Tables have 16 rows, of which row 0 is nobody's.
        m.d.comb += [Assert(C(_may_be(self.cores, n)) == (1 <= n <= 15)) for n in (0, 1, 15, 16)]
        core = Opened(self.cores, dut, platform, hollowed=("Transfer",))
        m.submodules.dut = core.fragment
        transfer = core.part("Transfer")
        free(m, dut.job.ready, dut.answer.valid, dut.answer.payload, dut.i.valid, dut.i.payload)
        free(m, dut.o.ready)
        free(m, dut.mem.cmd.ready, dut.mem.wdata.ready, dut.mem.rdata.valid, dut.mem.wdone.valid)
        free(m, dut.mem.rdata.payload, dut.mem.wdone.payload)
        stream_rules(m, dut.answer, Assume, "answer")
        stream_rules(m, transfer.head, Assume, "head")
        stream_rules(m, dut.job, Assert, "job")
        stream_rules(m, transfer.send, Assert, "send")
        stream_rules(m, transfer.store, Assert, "store")
        same(m, dut.i, transfer.i)
        same(m, transfer.o, dut.o)
        same_memory(m, transfer.mem, dut.mem)
        # The peer of which this proof speaks.
        self.peer = Signal(8, name="peer")
        self.number, self.expected = Signal(8, name="number"), Signal(16, name="expected")
        self.large, self.gathers = Signal(name="large"), Signal(8, name="gathers")
        self.in_role, self.replying = Signal(name="in_role"), Signal(name="replying")
        self.header = Signal(transfer.head.payload.header.shape(), name="header")
        self.receive = {n: Signal(name=f"in_{n}", init=n == "IDLE") for n in RECEIVE}
        self.reply = {n: Signal(name=f"reply_{n}", init=n == "IDLE") for n in REPLY}
        self.length = Signal(20, name="length")
        m.d.comb += self.peer.eq(AnyConst(8))
        m.d.comb += Assume((self.peer != 0) & (self.peer <= PEERS))
        self._receives(m, core, transfer)
        self._job(m, transfer)
        self._replies(m, core, transfer)
        return m

    def _receives(self, m, core, transfer):
        dut, on, header, head = self.dut, self.receive, self.header, transfer.head
        mine, busy, known = Signal(), Signal(), Signal()
        refuses, drops = Signal(), Signal()
        inside = dut.inside
        index = _index(header.peer)
        expected, large = inside["expected"][index], inside["large"][index]
        goes_on = (header.offset == expected) & (header.number == inside["numbers"][index])
        m.d.comb += [
            mine.eq(header.peer == self.peer),
            known.eq((header.peer != 0) & (header.peer <= PEERS)),
            busy.eq(self.in_role | self.replying),
            refuses.eq((Value.cast(header.kind) != DATA) | large),
            drops.eq(~known | ((header.offset != 0) & ~goes_on)),
        ]

        def go(old, new):
            m.d.sync += [on[old].eq(0), on[new].eq(1)]

        with m.If(on["IDLE"] & head.valid):
            go("IDLE", "LOOK")
            m.d.sync += header.eq(head.payload.header)
        with m.If(on["LOOK"] & drops):
            go("LOOK", "IDLE")
        with m.Elif(on["LOOK"] & ~dut.busy[index]):
            go("LOOK", "STORE")
            with m.If(mine & (header.offset == 0)):
                m.d.sync += [self.large.eq(0), self.gathers.eq(header.number)]
        with m.If(on["STORE"] & transfer.store.ready):
            go("STORE", "STORED")
        with m.If(on["STORED"] & transfer.stored):
            m.d.sync += self.length.eq(transfer.length)
            with m.If(header.last & ~transfer.error):
                go("STORED", "JUDGE")
            with m.Else():
                go("STORED", "IDLE")
            with m.If(mine):
                after = Mux(transfer.error | header.last, 0, header.offset + STEP)
                m.d.sync += self.expected.eq(after)
                m.d.sync += self.large.eq(self.large | transfer.overflow)
        with m.If(on["JUDGE"] & (dut.calls | dut.refused)):
            go("JUDGE", "IDLE")
            with m.If(mine):
                m.d.sync += [self.number.eq(header.number), self.in_role.eq(dut.calls)]
        m.d.comb += [
            Assert(head.ready == on["IDLE"]),
            Assert(transfer.drop == (on["LOOK"] & drops)),
            Assert(
                dut.dropped == (transfer.drop | (on["STORED"] & transfer.stored & transfer.error))
            ),
            Assert(transfer.store.valid == on["STORE"]),
            Assert(dut.job.valid == (on["JUDGE"] & ~refuses)),
            Assert(dut.calls == moves(dut.job)),
            Assert(dut.refused == (on["JUDGE"] & refuses & self.reply["IDLE"])),
        ]
        with m.If(transfer.store.valid | on["STORED"]):
            # Nothing of the peer is in the role or on its way back while its operand is written.
            m.d.comb += Assert(~(mine & busy))
        with m.If(transfer.store.valid):
            place = transfer.store.payload
            m.d.comb += [
                Assert(known),
                Assert(place.addr == BASE + ((header.peer - 1) << OPERAND_LOG2)),
                Assert(place.addr + place.room <= RESULTS),
                Assert(place.room == 1 << OPERAND_LOG2),
            ]
        # Invariants: the core's tables say of the peer what the model does.
        m.d.comb += [Assert(core.state(n, "receive") == on[n]) for n in RECEIVE]
        m.d.comb += [
            Assert(on["IDLE"] | (Value.cast(inside["header"]) == Value.cast(header))),
            Assert(inside["expected"][_index(self.peer)] == self.expected),
            Assert(inside["large"][_index(self.peer)] == self.large),
            Assert(inside["numbers"][_index(self.peer)] == self.gathers),
            Assert(on["IDLE"] | on["LOOK"] | ~mine | (header.number == self.gathers)),
            Assert(dut.busy[_index(self.peer)] == busy),
            Assert(on["IDLE"] | on["LOOK"] | known),
            Assert(~(on["JUDGE"] & mine & busy)),
            Assert(~on["JUDGE"] | (inside["length"] == self.length)),
            Cover(dut.dropped & on["LOOK"] & known & (header.offset != 0)),
            Cover(on["LOOK"] & mine & busy & ~drops),
            Cover(dut.refused & mine & self.large),
            Cover(moves(dut.job) & mine & (header.offset != 0)),
        ]

    def _job(self, m, transfer):
        dut, header, job = self.dut, self.header, self.dut.job.payload
        with m.If(dut.job.valid):
            m.d.comb += [
                Assert(Value.cast(job.kind) == DATA),
                Assert(job.first & (job.source == SOURCE)),
                Assert(job.session == 0),
                Assert(job.role == header.role),
                Assert(job.id == (header.number | header.peer << 8)),
                Assert(job.base == BASE + ((header.peer - 1) << OPERAND_LOG2)),
                Assert(job.offset == 0),
                # All that lies in the operand's area is of this call.
                Assert((header.peer != self.peer) | (job.id[:8] == self.gathers)),
                Assert(job.ring_log2 == OPERAND_LOG2),
                Assert(job.length == self.length),
                Assert(job.result == RESULTS + ((header.peer - 1) << RESULT_LOG2)),
                Assert(job.room == 1 << RESULT_LOG2),
                Assert(job.result + job.room <= END),
            ]

    def _replies(self, m, core, transfer):
        dut, on, header, answer = self.dut, self.reply, self.header, self.dut.answer
        given, call = answer.payload, Signal(transfer.send.payload.call.shape(), name="call")
        refused = dut.refused
        other_kind = Value.cast(header.kind) != DATA
        # The role answers what it has been given, each job once.
        with m.If(answer.valid):
            asker = given.id[8:16]
            m.d.comb += Assume((asker != 0) & (asker <= PEERS))
            with m.If(asker == self.peer):
                m.d.comb += [Assume(self.in_role), Assume(given.id[:8] == self.number)]

        def go(old, new):
            m.d.sync += [on[old].eq(0), on[new].eq(1)]

        with m.If(refused):
            m.d.sync += [call.eq(0), call.peer.eq(header.peer), call.number.eq(header.number)]
            m.d.sync += call.status.eq(Mux(other_kind, Status.BAD_TYPE, Status.TOO_LARGE))
        with m.Elif(moves(answer)):
            m.d.sync += [call.peer.eq(given.id[8:16]), call.number.eq(given.id[:8])]
            m.d.sync += [call.status.eq(given.status), call.length.eq(given.length)]
        with m.If(refused | moves(answer)):
            go("IDLE", "CALL")
        with m.If(on["CALL"] & transfer.send.ready):
            go("CALL", "SEND")
        with m.If(on["SEND"] & ~transfer.sending):
            go("SEND", "IDLE")
            with m.If(call.peer == self.peer):
                m.d.sync += self.replying.eq(0)
        with m.If(refused & (header.peer == self.peer)):
            m.d.sync += self.replying.eq(1)
        with m.If(moves(answer) & (given.id[8:16] == self.peer)):
            m.d.sync += [self.in_role.eq(0), self.replying.eq(1)]
        send, operand = transfer.send, transfer.send.payload.operand
        m.d.comb += [
            Assert(send.valid == on["CALL"]),
            Assert(answer.ready == (on["IDLE"] & ~refused)),
        ]
        with m.If(send.valid):
            m.d.comb += [
                Assert(Value.cast(send.payload.call) == Value.cast(call)),
                Assert(operand.base == RESULTS + ((call.peer - 1) << RESULT_LOG2)),
                Assert(operand.offset == 0),
                Assert(operand.ring_log2 == RESULT_LOG2),
                Assert(operand.length == call.length),
            ]
            with m.If(call.peer == self.peer):
                m.d.comb += [Assert(self.replying), Assert(call.number == self.number)]
        # Invariants.
        m.d.comb += [Assert(core.state(n, "reply") == on[n]) for n in REPLY]
        m.d.comb += [
            Assert(on["IDLE"] | (Value.cast(dut.call) == Value.cast(call))),
            Assert(on["IDLE"] | ((call.peer != 0) & (call.peer <= PEERS))),
            Assert(self.replying == (~on["IDLE"] & (call.peer == self.peer))),
            Assert(~(self.in_role & self.replying)),
            Assert(~self.replying | (call.number == self.number)),
            Assert(Value.cast(call.kind) == 0),
            Assert(call.role == 0),
            Assert(dut.call.role == 0),
            Assert(Value.cast(dut.call.kind) == 0),
            Cover(on["SEND"] & self.replying & (call.length != 0) & self.receive["LOOK"]),
            Cover(on["CALL"] & (call.status == Status.BAD_TYPE)),
        ]


MUTANTS = (
    Mutant("writes_under_the_role", "with m.Elif(~self.busy[peer]):", "with m.Else():"),
    Mutant("frees_too_early", "with m.If(~transfer.sending):\n", "with m.If(1):\n"),
    Mutant("any_place", "(header.offset == 0) | goes_on", "1"),
    Mutant(
        "joins_calls",
        "(header.offset == expected[peer]) & (header.number == numbers[peer])",
        "header.offset == expected[peer]",
    ),
    Mutant("forgets_it_was_large", "large[peer] | transfer.overflow", "transfer.overflow"),
    Mutant("area_of_the_next", "base + ((peer - 1) << log2)", "base + (peer << log2)"),
    Mutant("two_at_once", "answer.ready.eq(~refusal.valid)", "answer.ready.eq(1)"),
)

PROOFS = (
    Proof(
        name="cluster_server",
        core="cores.cluster.server.Server, 3 peers, operands of 512 bytes, its transfer hollow",
        says="each peer's call is one job or refusal, replied to once; its areas are its own",
        module="trebuchet.cores.cluster.server",
        build=lambda cores: ServerProof(
            cores,
            cores.Server(cores.ServerMemory(BASE, PEERS, OPERAND_LOG2, RESULT_LOG2), SOURCE),
        ),
        depth=2,
        cover_depth=16,
        mutants=MUTANTS,
        assumes="the stream rules on the inputs; the role answers each job once, and none else",
        not_proved="a bound in cycles, which depends on role and transfer; a reset while running",
    ),
)
