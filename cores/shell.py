"""The shell: everything between the Ethernet MAC, the external memory and the roles."""

import functools
from dataclasses import dataclass, field, replace

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..models.plan import Plan, PlanError
from ..models.smp_framing import MESSAGE_HEADER
from .arbiter import PacketArbiter
from .cluster.node import ClusterNode
from .csr import CsrSignature, Register, RegisterBlock
from .memory import MemorySignature
from .memory_arbiter import MemoryArbiter, connect_narrow
from .roles.array import RoleArray
from .roles.catalog import PlannedRole
from .roles.contract import NO_ROLE, JobKind
from .roles.needs import RolePlace
from .roles.slot import RoleSlot
from .services.discard import Discard
from .services.echo import Echo
from .services.framer import SMP_BLOCK, SmpFramer
from .services.mailbox import MAILBOX_BLOCK, Mailbox
from .services.merge import ServiceMerge
from .services.responder import Responder
from .services.smp_board import BOARD_BLOCK, BoardWindow
from .services.sweep import PERIOD_WIDTH, RequestClock
from .shell_memory import RESULT_HEADER, RESULT_SLOT, ShellMemory, slot_for
from .stream import PacketSignature
from .tcp.config import TINY, TcpConfig
from .tcp.engine import TcpEngine
from .tcp.line_side import LineSide, line_side_blocks

__all__ = ["OF_FIRMWARE", "Shell", "ShellConfig"]

#: Framings that need firmware: to answer, or to write what they send.
OF_FIRMWARE = ("http", "page")

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


@dataclass(frozen=True)
class ShellConfig:
    """What is built into a shell.

    Attributes
    ----------
    tcp : TcpConfig
        The TCP engine; its ``width`` is the data path of the whole shell. ``ports``,
        ``pool_base`` and ``state_base`` are set by the shell.
    base : int
        First address of the shell's part of external memory.
    plan : Plan
        Its roles and services (:mod:`trebuchet.models.plan`). Those :data:`OF_FIRMWARE` are left
        out if it is not ``managed``.
    result_slot : int or None
        Bytes of a result and its header, a power of two; there are two such slots a session. None:
        as the roles say for the largest message that can come (rule 4 of the role contract).
    peers : int
        Other boards with which this one shares its clients' jobs
        (:class:`~trebuchet.cores.cluster.node.ClusterNode`), 1 to 15; 0: none, and no LTL.
    managed : bool
        Firmware manages it: it has registers, and the services :data:`OF_FIRMWARE`. If not, what
        registers would say is as after reset, but for addresses and switch, which are ports; and
        it has no peers, of which firmware tells.
    configurable : bool
        Firmware answers configuration messages on the TCP ports with SMP. If not, or if it is not
        ``managed``, they are of a type that is unknown.

    Also ``roles``: a :class:`~trebuchet.cores.roles.catalog.PlannedRole` for each of the plan.
    """

    tcp: TcpConfig = field(default=TINY)
    base: int = 0
    plan: Plan = field(default=Plan())
    result_slot: int | None = None
    peers: int = 0
    managed: bool = True
    configurable: bool = True

    def __post_init__(self):
        if self.peers and not self.managed:
            raise ValueError("A shell without firmware must have no peers")
        if self.managed and len(self.plan.of(*OF_FIRMWARE)) != len(OF_FIRMWARE):
            raise PlanError(f"a shell with firmware must have services {', '.join(OF_FIRMWARE)}")
        if not self.managed:
            object.__setattr__(self, "plan", self.plan.without(*OF_FIRMWARE))
        object.__setattr__(self, "roles", tuple(map(PlannedRole, self.plan.roles)))
        ports = tuple(service.port for service in self.plan.services)
        object.__setattr__(self, "tcp", replace(self.tcp, ports=ports, pool_base=self.base))
        if self.result_slot is None:
            object.__setattr__(self, "result_slot", self._slot_of_roles())
        if self.tcp.cache:
            state = self.memory["sessions"].base
            object.__setattr__(self, "tcp", replace(self.tcp, state_base=state))

    def _slot_of_roles(self):
        operand = self.tcp.segment_size - MESSAGE_HEADER
        says = [role.needs.largest_result for role in self.roles]
        return max(
            (slot_for(largest(operand)) if largest else RESULT_SLOT for largest in says),
            default=RESULT_SLOT,
        )

    @property
    def width(self):
        return self.tcp.width

    @functools.cached_property
    def memory(self):
        """The regions of external memory, a :class:`~trebuchet.cores.shell_memory.ShellMemory`."""
        return ShellMemory(
            self.base,
            self.tcp.pool_size,
            self.tcp.rows,
            self.result_slot,
            [
                (role.name, role.needs.scratch_log2)
                for role in self.roles
                if role.needs.scratch_log2 is not None
            ],
            self.peers,
            self.tcp.segment_size,
            self.messages,
            self.tcp.state_size,
        )

    @property
    def result_room(self):
        """Bytes of the longest result that a role may have."""
        return self.result_slot - RESULT_HEADER

    @property
    def messages(self):
        """Numbers of sessions that jobs have: with places a pool for each TCP port with SMP."""
        return self.tcp.rows * (len(self.plan.of("smp")) or 1 if self.tcp.places else 1)

    @property
    def board(self):
        """Whether firmware takes configuration messages at the TCP ports with SMP."""
        return self.managed and self.configurable and bool(self.plan.of("smp"))

    @property
    def tag_width(self):
        """Tag bits of the shell's memory ports: those of the role that needs most."""
        return max([self.tcp.tag_width, *(role.needs.tag_width for role in self.roles)])

    @property
    def job_kinds(self):
        """Kinds of job that any role takes besides ``DATA``."""
        taken = {kind for role in self.roles for kind in role.needs.kinds}
        return tuple(kind for kind in JobKind if kind in taken)

    def make_slots(self):
        """For each role its slots, one for each instance."""
        return [[self._slot(role, k) for k in range(role.entry.instances)] for role in self.roles]

    def _slot(self, role, k):
        scratch = role.needs.scratch_log2
        place = RolePlace(
            self.width,
            self.tag_width,
            self.messages,
            None if scratch is None else self.memory[f"scratch_{role.name}"].base,
        )
        name = role.name if role.entry.instances == 1 else f"{role.name}_{k}"
        return RoleSlot(role.place(place), name, self.width, self.tag_width)


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
    ``irq``              Out   level interrupt: the mailbox or a role slot wants attention
    ``csr_…``            In    register blocks of the shell and its parts, if it is ``managed``
    ``enable``           In    if not, what the registers of these names would say;
    ``mac`` ``ip``             of 1, 48 and 32 bits
    ===================  ====  =================================================================

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
        self._arbiter = self._make_arbiter()
        blocks = {"shell": SHELL_BLOCK, **line_side_blocks(config.tcp)}
        if plan.of("smp"):
            blocks["smp"] = SMP_BLOCK
        if config.board:
            blocks["smp_board"] = BOARD_BLOCK
        if plan.of("http"):
            blocks["mailbox"] = MAILBOX_BLOCK
        blocks |= self._roles.blocks
        if self._cluster is not None:
            blocks |= self._cluster.blocks
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
                **ours,
            }
        )
        # Where addresses and switch come from.
        self._given = self.csr_shell if config.managed else self

    def _make_arbiter(self):
        """Ports: engine, its sessions' state if that is in memory; sender; mailbox, framer; slots;
        callers and server.

        Class 0 are those of the engine: receive DMA and sessions. All but foreign roles have their
        write data at hand.
        """
        config = self.config
        urgent = 1 + bool(config.tcp.cache)
        first = urgent + 1 + len(config.plan.of("http")) + bool(config.plan.of("smp"))
        prompt = [True] * first + [slot.prompt for slot in self._roles.slots]
        prompt += [True] * (config.peers + 1 if config.peers else 0)
        return MemoryArbiter(
            len(prompt),
            config.width,
            max(config.tag_width, config.tcp.state_tag_width),
            priority=(0,) * urgent + (1,) * (len(prompt) - urgent),
            prompt=[k for k, own in enumerate(prompt) if own],
        )

    def elaborate(self, platform):
        m = Module()
        engine, sender = self._line_side(m)
        self._irqs = []
        mailbox, framer = self._services(m, engine)
        roles, cluster = self._connect_roles(m, framer), self._cluster
        parts = [part for part in (mailbox, framer) if part is not None]
        memories = [engine.mem] + ([engine.state] if self.config.tcp.cache else [])
        memories += [sender.mem, *(part.mem for part in parts)]
        memories += [roles.mems[k] for k in range(len(roles.slots))]
        self._irqs += [part.irq for part in (mailbox, roles, cluster) if part is not None]
        m.submodules.memory = arbiter = self._arbiter
        if cluster is not None:
            memories += [cluster.mems[k] for k in range(self.config.peers + 1)]
        for i, mem in enumerate(memories):
            connect_narrow(m, mem, arbiter.ports[i])
        wiring.connect(m, wiring.flipped(self.mem), arbiter.mem)
        m.d.comb += self.irq.eq(Cat(self._irqs).any())
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
        classifier, sender = side.classifier, side.sender
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

    def _services(self, m, engine):
        """The plan's services at the engine's ports; returns mailbox and framer, or None."""
        plan, tcp, memory = self.config.plan, self.config.tcp, self.config.memory
        rest = bool(tcp.places)
        ports = {service: engine.services[k] for k, service in enumerate(plan.services)}
        made = {
            "echo": lambda: Echo(tcp.rows, tcp.segment_log2, rest),
            "discard": lambda: Discard(tcp.rows, rest),
            "http": lambda: Mailbox(
                tcp.width, tcp.rows, tcp.segment_log2, memory["mailbox"].base, tcp.unread, rest
            ),
            "smp": self._framer,
            "page": lambda: Responder(tcp.rows, rest),
        }
        parts = {name: make() for name, make in made.items() if plan.of(name)}
        m.submodules += parts.values()
        m.submodules.request_clock = clock = RequestClock()
        m.d.comb += clock.tick.eq(self.tick)
        m.d.comb += clock.period.eq(
            self.csr_shell.request_timeout if self.config.managed else REQUEST_TIMEOUT
        )
        for name, part in parts.items():
            if name != "smp":
                wiring.connect(m, ports[plan.of(name)[0]], part.service)
            if name in ("http", "smp"):
                m.d.comb += part.sweep.eq(clock.sweep)
                self._csr(m, "mailbox" if name == "http" else name, part)
        if "smp" in parts:
            self._connect_framer(m, parts["smp"], [ports[service] for service in plan.of("smp")])
        if "page" in parts:
            page = parts["page"]
            m.d.comb += [page.addr.eq(memory["page"].base)]
            m.d.comb += [page.length.eq(self.csr_shell.page_length)]
        return parts.get("http"), parts.get("smp")

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
