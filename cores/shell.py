"""The shell: everything between the Ethernet MAC, the external memory and the roles."""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .arbiter import PacketArbiter
from .cluster.node import ClusterNode
from .csr import CsrSignature, Register, RegisterBlock
from .drive.port import DriveSignature
from .drive.registers import DRIVE_BLOCK, DriveRegisters
from .drive.to_memory import DriveDma
from .memory import MemorySignature
from .memory_arbiter import MemoryArbiter, connect_narrow
from .probe.signals import Probes
from .probe.trace import TraceCore
from .roles.array import RoleArray
from .roles.contract import NO_ROLE
from .services.discard import Discard
from .services.echo import Echo
from .services.framer import SMP_BLOCK, SmpFramer
from .services.mailbox import MAILBOX_BLOCK, Mailbox
from .services.merge import ServiceMerge
from .services.pressure import Pressure
from .services.responder import Responder
from .services.smp_board import BOARD_BLOCK, BoardWindow
from .services.sweep import PERIOD_WIDTH, RequestClock
from .shell_config import ShellConfig
from .stream import PacketSignature
from .tcp.engine import TcpEngine
from .tcp.line_side import LineSide, line_side_blocks
from .web.service import Web

__all__ = ["Shell"]

#: The shell's streams of frames, which probes may name.
_PACKETS = ("rx", "tx", "other_rx", "other_tx")

#: Time for the rest of a request, in ticks: as much again may pass until it is noticed.
REQUEST_TIMEOUT = 10_000

SHELL_BLOCK = RegisterBlock(
    "shell",
    (
        Register("enable", "rw", 1, "1: TCP frames for this board go to the TCP engine"),
        Register("mac", "rw", 48, "this board's MAC address, first byte on the wire in bits 7..0"),
        Register("ip", "rw", 32, "this board's IPv4 address as a number"),
        Register("page_length", "rw", 16, "bytes of the fixed page", reset=1024),
        Register(
            "request_timeout",
            "rw",
            PERIOD_WIDTH,
            "ticks until an incomplete request is late, at most twice as many; 0: never",
            reset=REQUEST_TIMEOUT,
        ),
    ),
    "addresses and main switch of the shell",
)


class Shell(wiring.Component):
    """Classifier, TCP engine, services and role slot around one memory port.

    ===================  ====  =================================================================
    member               dir   meaning
    ===================  ====  =================================================================
    ``rx`` ``tx``        I/O   packet streams from and to the MAC: whole frames from the Ethernet
                               header on, without preamble and FCS
    ``other_rx``         Out   frames that are not for the TCP engine
    ``other_tx``         In    frames from whoever handles those
    ``mem``              Out   memory port; uses ``config.memory.size`` bytes from ``config.base``
    ``tick``             In    1 for one cycle every millisecond of protocol time
    ``irq``              Out   level interrupt: the mailbox, a role slot or the drive wants
                               attention
    ``drive``            Out   the block device (:mod:`.drive.port`), with ``config.drive``
    ``csr_…``            In    register blocks of the shell and its parts, if it is ``managed``
    ``enable``           In    if not, what the registers of these names would say;
    ``mac`` ``ip``             of 1, 48 and 32 bits
    ===================  ====  =================================================================

    A plan with probes has a trace core with the registers ``csr_probe``. It samples ``rx``, ``tx``,
    ``other_rx``, ``other_tx``, ``tick``, and ports of the line side by the names of
    :func:`~.tcp.line_side.line_side_blocks`, of services by framing, of slots by name.

    Throughput, latency and back-pressure are those of the parts. Frames to and from the two
    sides are never mixed; ``tx`` gives both a turn after each frame. ``enable`` = 0 sends every
    frame to ``other_rx``. Reset: everything idle, no session.
    """

    def __init__(self, config=None):
        self.config = config = config or ShellConfig()
        width, plan = config.width, config.plan
        self._cluster = ClusterNode(config.memory.cluster, width) if config.peers else None
        kinds = [role.needs.kinds for role in config.roles]
        slots = config.make_slots()
        self._roles = RoleArray(zip(kinds, slots, strict=True), width, config.tag_width)
        self.verilog_files = self._roles.verilog_files
        self._web = self._make_web()
        self._arbiter = self._make_arbiter()
        blocks = {"shell": SHELL_BLOCK, **line_side_blocks(config.tcp)}
        if plan.of("smp"):
            blocks["smp"] = SMP_BLOCK
        if config.board:
            blocks["smp_board"] = BOARD_BLOCK
        if plan.of("http"):
            blocks["mailbox"] = MAILBOX_BLOCK
        if self._web is not None:
            blocks["web"] = self._web.block
        blocks |= self._roles.blocks
        if self._cluster is not None:
            blocks |= self._cluster.blocks
        self._probes = self._trace = None
        if plan.probes is not None:
            self._probes = Probes(plan.probes, self._copies(width))
            self._trace = TraceCore(self._probes.signals, plan.probes.depth)
            blocks["probe"] = self._trace.block
        if config.drive:
            blocks["drive"] = DRIVE_BLOCK
        ours = {f"csr_{name}": In(CsrSignature(block)) for name, block in blocks.items()}
        if not config.managed:
            ours = {"enable": In(1), "mac": In(48), "ip": In(32)}
        super().__init__(
            {
                "rx": In(PacketSignature(width)),
                "tx": Out(PacketSignature(width)),
                "other_rx": Out(PacketSignature(width)),
                "other_tx": In(PacketSignature(width)),
                "mem": Out(MemorySignature(width, self._arbiter.mem_tag_width)),
                "tick": In(1),
                "irq": Out(1),
                **({"drive": Out(DriveSignature(width, 0))} if config.drive else {}),
                **ours,
            }
        )
        # Where addresses and switch come from.
        self._given = self.csr_shell if config.managed else self

    def _make_arbiter(self):
        """Ports: engine, its sessions' state if that is in memory; sender; mailbox, framer, web;
        slots; callers and server; drive.

        Class 0 are those of the engine: receive DMA and sessions. All but foreign roles and the
        drive have their write data at hand.
        """
        config, web = self.config, self._web
        urgent = 1 + bool(config.tcp.cache)
        first = urgent + 1 + len(config.plan.of("http", "web")) + bool(config.plan.of("smp"))
        prompt = [True] * first + [slot.prompt for slot in self._roles.slots]
        prompt += [True] * (config.peers + 1 if config.peers else 0)
        prompt += [False] * config.drive
        return MemoryArbiter(
            len(prompt),
            config.width,
            max(
                config.tag_width,
                config.tcp.state_tag_width,
                0 if web is None else web.mem.signature.tag_width,
            ),
            priority=(0,) * urgent + (1,) * (len(prompt) - urgent),
            prompt=[k for k, own in enumerate(prompt) if own],
        )

    def _copies(self, width):
        """Parts as those that probes may name, to find out what signals they have."""
        tcp = self.config.tcp
        side = LineSide(Module(), TcpEngine(tcp), Signal(48), Signal(32))
        packets = {n: PacketSignature(width).create() for n in _PACKETS}
        return self._named({**packets, "tick": Signal()}, side.parts, self._make_services())

    def _named(self, ports, line_side, services):
        slots = {slot.block.name: slot for slot in self._roles.slots}
        return {**ports, **line_side, **services, **slots}

    def _connect_probes(self, m):
        m.submodules.probe = trace = self._trace
        ports = {n: getattr(self, n) for n in (*_PACKETS, "tick")}
        values = self._probes.values(self._named(ports, self._line_parts, self._service_parts))
        m.d.comb += trace.data.eq(Cat(*values))
        self._csr(m, "probe", trace)

    def elaborate(self, platform):
        m = Module()
        engine, sender = self._line_side(m)
        self._irqs = []
        mailbox, framer = self._services(m, engine)
        roles, cluster = self._connect_roles(m, framer), self._cluster
        parts = [part for part in (mailbox, framer, self._web) if part is not None]
        memories = [engine.mem] + ([engine.state] if self.config.tcp.cache else [])
        memories += [sender.mem, *(part.mem for part in parts)]
        memories += [roles.mems[k] for k in range(len(roles.slots))]
        raising = (mailbox, self._web, roles, cluster)
        self._irqs += [part.irq for part in raising if part is not None]
        m.submodules.memory = arbiter = self._arbiter
        if cluster is not None:
            memories += [cluster.mems[k] for k in range(self.config.peers + 1)]
        if self.config.drive:
            memories.append(self._connect_drive(m))
        for i, mem in enumerate(memories):
            connect_narrow(m, mem, arbiter.ports[i])
        wiring.connect(m, wiring.flipped(self.mem), arbiter.mem)
        m.d.comb += self.irq.eq(Cat(self._irqs).any())
        if self._trace is not None:
            self._connect_probes(m)
        return m

    def _csr(self, m, name, component):
        if not self.config.managed:  # left alone, registers read as after reset
            return
        wiring.connect(m, wiring.flipped(getattr(self, f"csr_{name}")), component.csr)

    def _line_side(self, m):
        """From the MAC to the engine and back."""
        shell, tcp = self._given, self.config.tcp
        engine = TcpEngine(tcp)
        side = LineSide(m, engine, shell.mac, shell.ip)
        classifier, sender, self._line_parts = side.classifier, side.sender, side.parts
        m.submodules.tx = tx = PacketArbiter(tcp.width, 2 if self._cluster is None else 3)
        wiring.connect(m, wiring.flipped(self.rx), classifier.rx)
        wiring.connect(m, classifier.other, wiring.flipped(self.other_rx))
        wiring.connect(m, sender.frame, tx.i[0])
        wiring.connect(m, wiring.flipped(self.other_tx), tx.i[1])
        wiring.connect(m, tx.o, wiring.flipped(self.tx))
        if self._cluster is not None:
            self._connect_cluster(m, classifier, tx)
        for name, part in side.parts.items():
            self._csr(m, name, part)
        m.d.comb += [classifier.enable.eq(shell.enable), engine.tick.eq(self.tick)]
        if tcp.cache:  # whoever enables the shell has started the memory
            started = Signal()
            m.d.sync += started.eq(started | shell.enable)
            m.d.comb += engine.go.eq(started)
        return engine, sender

    def _connect_cluster(self, m, classifier, tx):
        """LTL sees every frame that is not TCP's, and takes its own; so do the host services,
        which have nobody at LTL's port."""
        m.submodules.cluster = cluster = self._cluster
        wiring.connect(m, cluster.tx, tx.i[2])
        other, shell = classifier.other, self.csr_shell
        m.d.comb += [
            cluster.rx.valid.eq(other.valid & other.ready),
            cluster.rx.payload.eq(other.payload),
            cluster.mac.eq(shell.mac),
            cluster.ip.eq(shell.ip),
            cluster.tick.eq(self.tick),
        ]
        for name in cluster.blocks:
            csr = getattr(self, f"csr_{name}")
            wiring.connect(m, wiring.flipped(csr), getattr(cluster, f"csr_{name}"))

    def _connect_drive(self, m):
        """Registers, DMA and the drive outside; returns the DMA's memory port."""
        m.submodules.drive_registers = registers = DriveRegisters()
        m.submodules.drive_dma = dma = DriveDma(self.config.width, 0)
        wiring.connect(m, registers.job, dma.job)
        wiring.connect(m, dma.done, registers.done)
        wiring.connect(m, dma.drive, wiring.flipped(self.drive))
        self._csr(m, "drive", registers)
        m.d.comb += [
            registers.sectors.eq(self.drive.sectors),
            registers.ready.eq(self.drive.ready),
            registers.present.eq(self.drive.present),
        ]
        self._irqs.append(registers.irq)
        return dma.mem

    def _make_services(self):
        """Parts by framing, for the plan's services."""
        plan, tcp, memory = self.config.plan, self.config.tcp, self.config.memory
        rest = bool(tcp.places)
        made = {
            "echo": lambda: Echo(tcp.rows, tcp.segment_log2, rest),
            "discard": lambda: Discard(tcp.rows, rest),
            "http": lambda: Mailbox(
                tcp.width, tcp.rows, tcp.segment_log2, memory["mailbox"].base, tcp.unread, rest
            ),
            "smp": self._framer,
            "page": lambda: Responder(tcp.rows, rest),
            "web": lambda: self._web,
        }
        return {name: make() for name, make in made.items() if plan.of(name)}

    def _services(self, m, engine):
        """The plan's services at the engine's ports; returns mailbox and framer, or None."""
        plan, memory = self.config.plan, self.config.memory
        ports = {service: engine.services[k] for k, service in enumerate(plan.services)}
        self._service_parts = parts = self._make_services()
        m.submodules += parts.values()
        m.submodules.request_clock = clock = RequestClock()
        m.d.comb += clock.tick.eq(self.tick)
        m.d.comb += clock.period.eq(
            self.csr_shell.request_timeout if self.config.managed else REQUEST_TIMEOUT
        )
        for name, part in parts.items():
            if name != "smp":
                wiring.connect(m, ports[plan.of(name)[0]], part.service)
            if name in ("http", "smp", "web"):
                m.d.comb += part.sweep.eq(clock.sweep | self._pressure(m, engine, name))
                self._csr(m, "mailbox" if name == "http" else name, part)
        if "smp" in parts:
            self._connect_framer(m, parts["smp"], [ports[service] for service in plan.of("smp")])
        if "page" in parts:
            page = parts["page"]
            m.d.comb += [page.addr.eq(memory["page"].base)]
            m.d.comb += [page.length.eq(self.csr_shell.page_length)]
        return parts.get("http"), parts.get("smp")

    def _pressure(self, m, engine, name):
        """Sweep of a web service whose places run out, for want of which it keeps browsers out."""
        if name != "web" or not engine.config.places:
            return 0
        m.submodules.pressure = pressure = Pressure(engine.config.places)
        number = self.config.plan.services.index(self.config.plan.of(name)[0])
        m.d.comb += pressure.free.eq(getattr(engine.csr, f"places_free_{number}"))
        return pressure.sweep

    def _make_web(self):
        tcp, services = self.config.tcp, self.config.plan.of("web")
        size = (tcp.width, tcp.rows, tcp.segment_log2)
        more = {"unread": tcp.unread, "rest": bool(tcp.places), "desk": True}
        return Web(*size, lanes=services[0].option("lanes"), **more) if services else None

    def _framer(self):
        config, plan = self.config, self.config.plan
        tcp, results = config.tcp, config.memory["results"]
        roles = [service.role for service in plan.of("smp")]
        return SmpFramer(
            tcp.width,
            config.messages,
            0,
            tcp.segment_log2,
            results.base,
            config.result_slot,
            config.job_kinds,
            tcp.unread,
            [NO_ROLE if role is None else plan.number(role) for role in roles],
            len(plan.roles),
            bool(tcp.places),
            config.board,
        )

    def _connect_framer(self, m, framer, ports):
        """One framer at all TCP ports with SMP."""
        if len(ports) == 1:
            wiring.connect(m, ports[0], framer.service)
            return
        tcp = self.config.tcp
        width = tcp.place_width if tcp.places else None
        m.submodules.smp_ports = merge = ServiceMerge(len(ports), width)
        for k, port in enumerate(ports):
            wiring.connect(m, port, merge.ports[k])
        wiring.connect(m, merge.service, framer.service)
        m.d.comb += [framer.origin.eq(merge.origin), merge.to.eq(framer.to)]

    def _connect_roles(self, m, framer):
        """Messages become jobs of the roles, here or at a peer's."""
        m.submodules.roles = roles = self._roles
        m.d.comb += roles.tick.eq(self.tick)
        for name in roles.blocks:
            if self.config.managed:
                csr = getattr(self, f"csr_{name}")
                wiring.connect(m, wiring.flipped(csr), getattr(roles, f"csr_{name}"))
        if framer is None:
            return roles
        asks = self._window(m, framer) if self.config.board else (framer.job, framer.answer)
        if self._cluster is None:
            wiring.connect(m, asks[0], roles.job)
            wiring.connect(m, roles.answer, asks[1])
            if framer.count > 1:
                m.d.comb += framer.doors.eq(roles.doors)
            return roles
        # A peer's role may take a job when ours does not: every door is open.
        cluster = self._cluster
        if framer.count > 1:
            m.d.comb += framer.doors.eq(-1)
        wiring.connect(m, asks[0], cluster.job)
        wiring.connect(m, cluster.answer, asks[1])
        wiring.connect(m, cluster.role_job, roles.job)
        wiring.connect(m, roles.answer, cluster.role_answer)
        return roles

    def _window(self, m, framer):
        """The firmware takes its jobs out of the framer's; returns where the others come and go."""
        m.submodules.smp_board = window = BoardWindow(self.config.messages)
        self._csr(m, "smp_board", window)
        wiring.connect(m, framer.job, window.job)
        wiring.connect(m, window.answer, framer.answer)
        m.d.comb += framer.door.eq(window.door)
        self._irqs.append(window.irq)
        return window.jobs, window.answers
