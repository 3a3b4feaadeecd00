"""The shell: everything between the Ethernet MAC, the external memory and the roles."""

from dataclasses import dataclass, field, replace

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..models.ecg import model as ecg_model
from ..models.ecg.presets import preset_named
from .arbiter import PacketArbiter
from .cluster.node import ClusterNode
from .cluster.server import ServerMemory
from .csr import CsrSignature, Register, RegisterBlock
from .memory import MemorySignature
from .memory_arbiter import MemoryArbiter, connect_narrow
from .roles.catalog import load_role
from .roles.contract import JobKind
from .roles.discard import Discard
from .roles.ecg.load import STORE_LOG2
from .roles.ecg.role import EcgRole
from .roles.echo import Echo
from .roles.framer import SMP_BLOCK, SmpFramer
from .roles.mailbox import MAILBOX_BLOCK, Mailbox
from .roles.responder import Responder
from .roles.slot import RoleSlot
from .roles.sweep import PERIOD_WIDTH, RequestClock
from .stream import PacketSignature
from .tcp.config import TINY, TcpConfig
from .tcp.engine import TcpEngine
from .tcp.line_side import LineSide, line_side_blocks

__all__ = ["SERVICES", "Shell", "ShellConfig", "ShellMemory"]

#: The services behind the TCP engine in the order of its service ports, and their TCP ports:
#: RFC 862, RFC 863, HTTP by firmware, SMP messages to the ECG role, the fixed page.
SERVICES = {"echo": 7, "discard": 9, "mailbox": 80, "smp": 4000, "page": 8080}
#: Those that need firmware: to answer, or to write what they send.
OF_FIRMWARE = ("mailbox", "page")

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


#: Bytes before a result in its slot.
RESULT_HEADER = 16
#: Bytes of a message before the operand.
MESSAGE_HEADER = 12


def slot_for(result):
    """Bytes of a result slot, a power of two, for results of at most ``result`` bytes."""
    return max(32, 1 << (RESULT_HEADER + result - 1).bit_length())


#: For the ECG role, and for roles that do not say how long their results are.
RESULT_SLOT = slot_for(ecg_model.MAX_RESULT)


@dataclass(frozen=True)
class ShellMemory:
    """Where the shell's data lie in external memory, from ``base`` on, a multiple of a segment.

    In this order: the receive pool; two result slots a session for the SMP framer; a transmit
    slot a session for the mailbox; the fixed page; the ECG role's scratch memory for records, if it
    takes them; an operand, as large as a segment, and a result slot for each peer.
    """

    base: int
    pool: int
    sessions: int
    records: bool = False
    result_slot: int = RESULT_SLOT
    peers: int = 0
    operand: int = 0

    MAILBOX_SLOT = 4096
    PAGE = 1 << 16

    @property
    def result_slots(self):
        return self.base + self.pool

    @property
    def mailbox_slots(self):
        end = self.result_slots + 2 * self.sessions * self.result_slot
        return -(-end // self.MAILBOX_SLOT) * self.MAILBOX_SLOT

    @property
    def page(self):
        return self.mailbox_slots + self.sessions * self.MAILBOX_SLOT

    @property
    def scratch(self):
        return self.page + self.PAGE

    @property
    def size(self):
        """Bytes needed from ``base`` on."""
        if not self.peers:
            return self._end - self.base
        return self.cluster.base + self.cluster.size - self.base

    @property
    def _end(self):
        """The end of what a board alone needs."""
        return self.scratch + (self.sessions << STORE_LOG2 if self.records else 0)

    @property
    def cluster(self):
        """Buffers for jobs of peers, a :class:`~trebuchet.cores.cluster.server.ServerMemory`."""
        align = max(self.operand, self.result_slot)
        base = -(-self._end // align) * align
        logs = (size.bit_length() - 1 for size in (self.operand, self.result_slot))
        return ServerMemory(base, self.peers, *logs)


@dataclass(frozen=True)
class ShellConfig:
    """What is built into a shell.

    Attributes
    ----------
    tcp : TcpConfig
        The TCP engine; its ``width`` is the data path of the whole shell. ``ports`` and
        ``pool_base`` are set by the shell.
    base : int
        First address of the shell's part of external memory.
    ecg_preset : str
        Features and network of the ECG role, one of ``models/ecg/presets.py``.
    ecg_pipelines : int
        Pipelines of the ECG role.
    ecg_buffers : int
        Blocks that each of them holds, 1 or 2.
    ecg_stream : bool
        The ECG role takes records in parts (SMP message type 4).
    ecg_loadable : bool
        Its network takes new weights at run time (SMP message type 1, and registers).
    role : str
        What is in the slot: ``"ecg"``; the name of another folder of ``cores/roles``, built as it
        comes; or ``"none"``: messages are answered ``NO_ROLE``.
    result_slot : int or None
        Bytes of a result and its header, a power of two; there are two such slots a session. None:
        as the role says for the largest message that can come (rule 4 of the role contract).
    peers : int
        Other boards with which this one shares its clients' jobs
        (:class:`~trebuchet.cores.cluster.node.ClusterNode`), 1 to 15; 0: none, and no LTL.
    managed : bool
        Firmware manages it: it has registers, and the services :data:`OF_FIRMWARE`. If not, what
        registers would say is as after reset, but for addresses and switch, which are ports; and
        it has no peers, of which firmware tells.
    """

    tcp: TcpConfig = field(default=TINY)
    base: int = 0
    ecg_preset: str = "faithful"
    ecg_pipelines: int = 1
    ecg_buffers: int = 1
    ecg_stream: bool = False
    ecg_loadable: bool = False
    role: str = "ecg"
    result_slot: int | None = None
    peers: int = 0
    managed: bool = True

    def __post_init__(self):
        if self.peers and not self.managed:
            raise ValueError("A shell without firmware must have no peers")
        ports = tuple(SERVICES[name] for name in self.services)
        object.__setattr__(self, "tcp", replace(self.tcp, ports=ports, pool_base=self.base))
        if self.result_slot is None:
            object.__setattr__(self, "result_slot", self._slot_of_role())

    def _slot_of_role(self):
        if self.role == "none" or not hasattr(load_role(self.role), "largest_result"):
            return RESULT_SLOT
        return slot_for(load_role(self.role).largest_result(self.tcp.segment_size - MESSAGE_HEADER))

    @property
    def services(self):
        """Names of the services, in the order of their ports."""
        return tuple(name for name in SERVICES if self.managed or name not in OF_FIRMWARE)

    @property
    def width(self):
        return self.tcp.width

    @property
    def memory(self):
        return ShellMemory(
            self.base,
            self.tcp.pool_size,
            self.tcp.sessions,
            self.ecg_stream,
            self.result_slot,
            self.peers,
            self.tcp.segment_size,
        )

    @property
    def role_tag_width(self):
        """Tag bits of the role's memory port, and so of the shell's arbiter."""
        if self.role != "ecg":
            return self.tcp.tag_width
        bits = EcgRole.tag_bits(self.ecg_pipelines, self.ecg_stream, self.ecg_loadable)
        return max(self.tcp.tag_width, bits)

    @property
    def job_kinds(self):
        """Kinds of job that the role takes besides ``DATA``."""
        if self.role != "ecg":
            return ()
        kinds = ((JobKind.STREAM, self.ecg_stream), (JobKind.CONFIGURE, self.ecg_loadable))
        return tuple(kind for kind, built in kinds if built)

    def make_role(self):
        """The role of the slot; None if there is none."""
        if self.role == "none":
            return None
        if self.role != "ecg":
            return load_role(self.role)(self.width, tag_width=self.role_tag_width)
        return EcgRole(
            self.width,
            tag_width=self.role_tag_width,
            pipelines=self.ecg_pipelines,
            buffers=self.ecg_buffers,
            scratch=self.memory.scratch if self.ecg_stream else None,
            sessions=self.tcp.sessions,
            preset=preset_named(self.ecg_preset),
            loadable=self.ecg_loadable,
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
        width = config.width
        self._cluster = ClusterNode(config.memory.cluster, width) if config.peers else None
        # Engine, sender, framer, role, mailbox; callers and server.
        ports = 4 + config.managed + (config.peers + 1 if config.peers else 0)
        self._slot = RoleSlot(config.make_role(), config.role, width, config.role_tag_width)
        # Class 0: the engine's receive DMA. All but a foreign role have their write data at hand.
        self._arbiter = MemoryArbiter(
            ports,
            width,
            config.role_tag_width,
            priority=(0,) + (1,) * (ports - 1),
            prompt=[k for k in range(ports) if k != 3 + config.managed or self._slot.prompt],
        )
        self.verilog_files = self._slot.verilog_files
        blocks = {
            "shell": SHELL_BLOCK,
            **line_side_blocks(config.tcp),
            "smp": SMP_BLOCK,
            "mailbox": MAILBOX_BLOCK,
            config.role: self._slot.block,
        }
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

    def elaborate(self, platform):
        m = Module()
        engine, sender, slot = self._line_side(m)
        services, memories, irq = self._services(m, slot)
        for i, service in enumerate(services):
            wiring.connect(m, engine.services[i], service.service)
        m.submodules.memory = arbiter = self._arbiter
        if self._cluster is not None:
            memories += tuple(self._cluster.mems[k] for k in range(self.config.peers + 1))
            irq |= self._cluster.irq
        for i, mem in enumerate((engine.mem, sender.mem, *memories)):
            connect_narrow(m, mem, arbiter.ports[i])
        wiring.connect(m, wiring.flipped(self.mem), arbiter.mem)
        m.d.comb += self.irq.eq(irq)
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
        m.submodules[self.config.role] = slot = self._slot
        self._csr(m, self.config.role, slot)
        return engine, sender, slot

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

    def _services(self, m, slot):
        """The services by :attr:`ShellConfig.services`, memory ports, the interrupt."""
        config, tcp, memory = self.config, self.config.tcp, self.config.memory
        parts = {"echo": Echo(tcp.sessions, tcp.segment_log2), "discard": Discard(tcp.sessions)}
        if config.managed:
            parts["mailbox"] = mailbox = Mailbox(
                tcp.width, tcp.sessions, tcp.segment_log2, memory.mailbox_slots, tcp.unread
            )
        parts["smp"] = framer = SmpFramer(
            tcp.width,
            tcp.sessions,
            0,
            tcp.segment_log2,
            memory.result_slots,
            memory.result_slot,
            config.job_kinds,
            tcp.unread,
        )
        if config.managed:
            parts["page"] = page = Responder(tcp.sessions)
        m.submodules += parts.values()
        m.submodules.request_clock = clock = RequestClock()
        m.d.comb += clock.tick.eq(self.tick)
        m.d.comb += clock.period.eq(
            self.csr_shell.request_timeout if config.managed else REQUEST_TIMEOUT
        )
        for name in ("mailbox", "smp"):
            if name in parts:
                m.d.comb += parts[name].sweep.eq(clock.sweep)
        self._connect_role(m, framer, slot)
        memories, irq = (framer.mem, slot.mem), slot.irq
        if config.managed:
            memories, irq = (mailbox.mem, *memories), mailbox.irq | irq
            self._csr(m, "mailbox", mailbox)
        self._csr(m, "smp", framer)
        if config.managed:
            m.d.comb += [page.addr.eq(memory.page), page.length.eq(self.csr_shell.page_length)]
        return tuple(parts[name] for name in config.services), memories, irq

    def _connect_role(self, m, framer, slot):
        """Messages become jobs of the role, here or at a peer's."""
        if self._cluster is None:
            wiring.connect(m, framer.job, slot.job)
            wiring.connect(m, slot.answer, framer.answer)
            return
        wiring.connect(m, framer.job, self._cluster.job)
        wiring.connect(m, self._cluster.answer, framer.answer)
        wiring.connect(m, self._cluster.role_job, slot.job)
        wiring.connect(m, slot.answer, self._cluster.role_answer)
