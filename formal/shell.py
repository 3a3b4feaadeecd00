"""Proof of ``Shell`` in ``cores/shell.py``: what lies between its parts.

All parts are hollow (:mod:`~trebuchet.formal.kit.parts`), so this holds for any: every packet
stream, service port, memory port, job, answer and register block goes where the data sheets say,
and to nobody else; LTL, if there is a cluster, sees each frame that the other side takes, once, and
never holds one up; the board's addresses and the tick reach all who need them; an interrupt of any
part is one of the shell's. The parts are built with the sizes and addresses of the shell's
configuration, services in the order of their TCP ports.

Two plans are built: two roles with a TCP port each and a drive, and with peers none. Not proved:
the parts, which have proofs of their own; a reset while running.
"""

from amaranth.hdl import Assert, Const, Cover, Elaboratable, Value
from amaranth.lib.wiring import In
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.models.plan import Plan

from .kit.parts import Opened, all_of, hollow, moves, same, same_memory
from .kit.proof import Mutant, Proof
from .stream import free, new_harness

__all__ = ["PROOFS"]

SESSIONS, BASE = 4, 1 << 20
TCP = TcpConfig(sessions=SESSIONS, segment_log2=14, wheel=16)
#: By the number of peers.
PLANS = {
    0: Plan.of_roles("loopback", "benchmark:instances=2"),
    2: Plan(),
}
#: Their TCP ports.
PORTS = {0: (7, 9, 80, 4000, 4001, 8080), 2: (7, 9, 80, 4000, 8080)}
PARTS = (
    *("Classifier", "Parser", "TcpEngine", "Sender", "PacketArbiter"),
    *("Echo", "Discard", "Mailbox", "SmpFramer", "Responder", "ServiceMerge"),
    *("BoardWindow", "DriveRegisters", "DriveDma"),
)


def memory(m, requester, port):
    """A memory port and its place at the arbiter, whose tags may be wider."""
    if requester.signature.tag_width == port.signature.tag_width:
        same_memory(m, requester, port)
        return
    pairs = ((requester.cmd, port.cmd), (requester.wdata, port.wdata))
    pairs += ((port.rdata, requester.rdata), (port.wdone, requester.wdone))
    for producer, consumer in pairs:
        m.d.comb += [
            Assert(consumer.valid == producer.valid),
            Assert(producer.ready == consumer.ready),
        ]
        for name in producer.payload.shape().members:
            one, other = (Value.cast(side.payload[name]) for side in (producer, consumer))
            bits = min(len(one), len(other))
            m.d.comb += Assert(one[:bits] == other[:bits])
            if len(other) > bits:
                m.d.comb += Assert(other[bits:] == 0)


class ShellProof(Elaboratable):
    def __init__(self, cores, peers):
        self.cores, self.peers = cores, peers

    def elaborate(self, platform):
        m = new_harness()
        plan = PLANS[self.peers]
        config = self.cores.ShellConfig(
            tcp=TCP, base=BASE, plan=plan, peers=self.peers, drive=not self.peers
        )
        self.config, self.dut = config, self.cores.Shell(config)
        dut = self.dut
        self.roles, self.arbiter = hollow(dut._roles), hollow(dut._arbiter)
        self.cluster = hollow(dut._cluster) if self.peers else None
        helpers = (self.cores.LineSide,)
        self.core = core = Opened(self.cores, dut, platform, hollowed=PARTS, helpers=helpers)
        m.submodules.dut = core.fragment
        for _, member, port in dut.signature.flatten(dut):
            if member.flow is In and len(Value.cast(port)):
                free(m, port)
        self._line(m)
        self._services(m)
        self._memory(m)
        self._settings(m)
        if self.cluster is not None:
            self._cluster(m)
        else:
            self._drive(m)
        return m

    def _line(self, m):
        dut, part = self.dut, self.core.part
        classifier, parser, engine = part("Classifier"), part("Parser"), part("TcpEngine")
        sender, tx = part("Sender"), part("PacketArbiter")
        same(m, dut.rx, classifier.rx)
        same(m, classifier.toe, parser.frame)
        same(m, classifier.other, dut.other_rx)
        same(m, parser.segment, engine.segment)
        same(m, parser.payload, engine.payload)
        same(m, engine.tx_segment, sender.segment)
        same(m, sender.sent, engine.sent)
        same(m, sender.frame, tx.i[0])
        same(m, dut.other_tx, tx.i[1])
        same(m, tx.o, dut.tx)
        m.d.comb += [
            Assert(Const(len(tx.i)) == (3 if self.peers else 2)),
            Assert(Const(engine.config.pool_base) == BASE),
            Assert(Const(engine.config.sessions) == SESSIONS),
            Assert(Const(engine.config.ports == PORTS[self.peers])),
            Cover(moves(dut.rx) & moves(dut.tx) & moves(dut.other_tx)),
        ]

    def _services(self, m):
        part, roles, config = self.core.part, self.roles, self.config
        services = [part(n) for n in ("Echo", "Discard", "Mailbox", "SmpFramer", "Responder")]
        echo, discard, mailbox, framer, page = services
        for service in services:
            m.d.comb += Assert(Const(service.sessions) == SESSIONS)
        window = part("BoardWindow")
        same(m, framer.job, window.job)
        same(m, window.answer, framer.answer)
        m.d.comb += [
            Assert(framer.door == window.door),
            Assert(Const(window.sessions) == config.messages),
        ]
        if self.cluster is None:
            merge = part("ServiceMerge")
            smp = [merge.ports[0], merge.ports[1]]
            all_of(m, merge.service, framer.service)
            m.d.comb += [
                Assert(framer.origin == merge.origin),
                Assert(merge.to == framer.to),
                Assert(framer.doors == roles.doors),
                Assert(Const(framer.roles == (0, 1))),
                Assert(Const(framer.count == 2)),
            ]
            same(m, window.jobs, roles.job)
            same(m, roles.answer, window.answers)
        else:
            smp = [framer.service]
            m.d.comb += Assert(Const(framer.roles == (31,) and framer.count == 0))
            same(m, window.jobs, self.cluster.job)
            same(m, self.cluster.answer, window.answers)
            same(m, self.cluster.role_job, roles.job)
            same(m, roles.answer, self.cluster.role_answer)
        behind = [echo.service, discard.service, mailbox.service, *smp, page.service]
        for port, service in zip(part("TcpEngine").services, behind, strict=True):
            all_of(m, port, service)
        layout = config.memory
        m.d.comb += [
            Assert(Const(echo.segment_log2) == TCP.segment_log2),
            Assert(Const(mailbox.segment_log2) == TCP.segment_log2),
            Assert(Const(framer.segment_log2) == TCP.segment_log2),
            Assert(Const(mailbox.slots_base) == layout["mailbox"].base),
            Assert(Const(framer.slots_base) == layout["results"].base),
            Assert(Const(framer.slot_bytes) == config.result_slot),
            Assert(Const(framer.source) == 0),
            Assert(Const(framer.largest) == config.tcp.unread),
            Assert(page.addr == layout["page"].base),
            Assert(page.length == self.dut.csr_shell.page_length),
        ]
        irq = mailbox.irq | roles.irq | window.irq
        irq = irq | (self.cluster if self.peers else part("DriveRegisters")).irq
        m.d.comb += [Assert(self.dut.irq == irq), Cover(self.dut.irq & ~mailbox.irq)]

    def _memory(self, m):
        part, ports = self.core.part, self.arbiter.ports
        users = [part("TcpEngine").mem, part("Sender").mem]
        users += [part("Mailbox").mem, part("SmpFramer").mem]
        users += [self.roles.mems[k] for k in range(len(self.roles.slots))]
        if self.cluster is not None:
            users += [self.cluster.mems[k] for k in range(self.peers + 1)]
        else:
            users.append(part("DriveDma").mem)
        m.d.comb += Assert(Const(len(ports)) == len(users))
        for user, port in zip(users, ports, strict=True):
            memory(m, user, port)
        same_memory(m, self.arbiter.mem, self.dut.mem)

    def _settings(self, m):
        dut, part, shell = self.dut, self.core.part, self.dut.csr_shell
        classifier, sender = part("Classifier"), part("Sender")
        m.d.comb += [
            Assert(classifier.enable == shell.enable),
            *(Assert(unit.mac == shell.mac) for unit in (classifier, sender)),
            *(Assert(unit.ip == shell.ip) for unit in (classifier, sender)),
            Assert(part("TcpEngine").tick == dut.tick),
            Assert(self.roles.tick == dut.tick),
        ]
        blocks = {
            "classifier": classifier,
            "tcp_rx": part("Parser"),
            "tcp": part("TcpEngine"),
            "tcp_tx": sender,
            "smp": part("SmpFramer"),
            "smp_board": part("BoardWindow"),
            "mailbox": part("Mailbox"),
        }
        for name, unit in blocks.items():
            all_of(m, getattr(dut, f"csr_{name}"), unit.csr)
        for name in self.roles.blocks:
            all_of(m, getattr(dut, f"csr_{name}"), getattr(self.roles, f"csr_{name}"))

    def _drive(self, m):
        dut, part = self.dut, self.core.part
        registers, dma = part("DriveRegisters"), part("DriveDma")
        same(m, registers.job, dma.job)
        same(m, dma.done, registers.done)
        all_of(m, dut.drive, dma.drive)
        all_of(m, dut.csr_drive, registers.csr)
        m.d.comb += [
            Assert(registers.sectors == dut.drive.sectors),
            Assert(registers.ready == dut.drive.ready),
            Assert(registers.present == dut.drive.present),
        ]

    def _cluster(self, m):
        dut, cluster, shell = self.dut, self.cluster, self.dut.csr_shell
        other = self.core.part("Classifier").other
        same(m, cluster.tx, self.core.part("PacketArbiter").i[2])
        m.d.comb += [
            Assert(cluster.rx.valid == moves(other)),
            Assert(
                ~cluster.rx.valid | (Value.cast(cluster.rx.payload) == Value.cast(other.payload))
            ),
            Assert(cluster.mac == shell.mac),
            Assert(cluster.ip == shell.ip),
            Assert(cluster.tick == dut.tick),
            Cover(moves(other) & other.payload.last),
        ]
        for name in cluster.blocks:
            all_of(m, getattr(dut, f"csr_{name}"), getattr(cluster, f"csr_{name}"))


def _mutants(peers):
    if not peers:
        return (
            Mutant(
                "mac_for_ip", "m, engine, shell.mac, shell.ip", "m, engine, shell.mac, shell.mac", 4
            ),
            Mutant(
                "deaf_engine",
                "wiring.connect(m, parser.segment, engine.segment)",
                "pass",
                4,
                where="trebuchet.cores.tcp.line_side",
            ),
            Mutant(
                "services_swapped",
                "{service: engine.services[k] for k, service in enumerate(plan.services)}",
                "{service: engine.services[k ^ (k < 2)] for k, service in "
                "enumerate(plan.services)}",
                4,
            ),
            Mutant(
                "lost_interrupt",
                "(mailbox, self._web, roles, cluster)",
                "(mailbox, self._web, cluster)",
                4,
                within="elaborate",
            ),
            Mutant(
                "silent_drive",
                "self._irqs.append(registers.irq)",
                "pass",
                4,
                within="_connect_drive",
            ),
            Mutant(
                "medium_always_ready",
                "registers.ready.eq(self.drive.ready)",
                "registers.ready.eq(1)",
                4,
            ),
            Mutant("silent_window", "self._irqs.append(window.irq)", "pass", 4, within="_window"),
            Mutant("door_of_nobody", "framer.door.eq(window.door)", "framer.door.eq(1)", 4),
            Mutant(
                "page_of_the_slots",
                'page.addr.eq(memory["page"].base)',
                'page.addr.eq(memory["mailbox"].base)',
                4,
            ),
            Mutant("doors_of_nobody", "framer.doors.eq(roles.doors)", "framer.doors.eq(-1)", 4),
            Mutant("ports_swapped", "merge.to.eq(framer.to)", "merge.to.eq(~framer.to)", 4),
        )
    return (
        Mutant(
            "frames_taken_twice",
            "cluster.rx.valid.eq(other.valid & other.ready)",
            "cluster.rx.valid.eq(other.valid)",
            4,
        ),
        Mutant(
            "lost_interrupt",
            "(mailbox, self._web, roles, cluster)",
            "(mailbox, self._web, roles)",
            4,
            within="elaborate",
        ),
        Mutant(
            "no_tick",
            "cluster.tick.eq(self.tick)",
            "cluster.tick.eq(0)",
            4,
            within="_connect_cluster",
        ),
    )


PROOFS = tuple(
    Proof(
        name=name,
        core=f"cores.shell.Shell(4 sessions, {peers} peers), its parts hollow",
        says="frames, segments, service ports, memory ports, jobs, registers, addresses and "
        "interrupts go where they belong; parts have the sizes that they must have",
        module="trebuchet.cores.shell",
        build=lambda cores, peers=peers: ShellProof(cores, peers),
        depth=1,
        cover_depth=3,
        mutants=_mutants(peers),
        assumes="nothing",
        not_proved="the parts, which have proofs of their own; other plans",
    )
    for name, peers in (("shell_parts", 0), ("shell_parts_cluster", 2))
)
