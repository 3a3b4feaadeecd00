"""What is built into a shell: :class:`ShellConfig`."""

import functools
from dataclasses import dataclass, field, replace

from ..models.plan import Plan, PlanError
from ..models.smp_framing import MESSAGE_HEADER
from .roles.catalog import PlannedRole
from .roles.contract import JobKind
from .roles.needs import RolePlace
from .roles.slot import RoleSlot
from .shell_memory import RESULT_HEADER, RESULT_SLOT, ShellMemory, slot_for
from .tcp.config import TINY, TcpConfig

__all__ = ["OF_FIRMWARE", "ShellConfig"]

#: Framings that need firmware: to answer, or to write what they send.
OF_FIRMWARE = ("http", "page", "web")
#: Those of them that firmware needs.
_REQUIRED = ("http", "page")


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
    drive : bool
        It has a block device, which firmware reads and writes (:mod:`.drive`); only if ``managed``.

    Also ``roles``: a :class:`~trebuchet.cores.roles.catalog.PlannedRole` for each of the plan.
    """

    tcp: TcpConfig = field(default=TINY)
    base: int = 0
    plan: Plan = field(default=Plan())
    result_slot: int | None = None
    peers: int = 0
    managed: bool = True
    configurable: bool = True
    drive: bool = False

    def __post_init__(self):
        if self.peers and not self.managed:
            raise ValueError("A shell without firmware must have no peers")
        if self.drive and not self.managed:
            raise ValueError("A shell without firmware must have no drive")
        if self.managed and len(self.plan.of(*_REQUIRED)) != len(_REQUIRED):
            raise PlanError(f"a shell with firmware must have services {', '.join(_REQUIRED)}")
        if self.plan.probes is not None and not self.managed:
            raise PlanError("a shell without firmware must have no probes, which that reads")
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
            sum(service.option("memory") for service in self.plan.of("web")),
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
