"""From a plan to what is built: sizes of the simulated board, and plans of the command line."""

import hashlib
import json
from dataclasses import replace

from ..boards import load_board
from ..boards.overrides import Overrides
from ..boards.presets import TcpChoice
from ..boards.sim import BOARD
from ..models.errors import TrebuchetError
from ..models.plan import EngineEntry, Plan, PlanError, RoleEntry, ServiceEntry, load_plan
from ..models.probe_plan import ProbeSet
from ..models.role_folders import add_roles
from ..models.smp_framing import MESSAGE_HEADER

__all__ = [
    "build_label",
    "choices_report",
    "overrides_of",
    "plan_label",
    "plan_of",
    "sim_address",
    "sim_board",
    "tcp_of",
    "with_choices",
]

#: Bytes of the largest memory that a simulated board may have, that of the memory map.
_MOST_MEMORY = 1 << 30


def sim_board(plan=None, bridge=False, tcp=None):
    """The simulated board with ``plan``: segments for its largest operand, sessions that fit.

    ``plan``: None for its own. ``bridge``: with a second port, which a plan with engines needs.
    ``tcp``: a :class:`~..boards.presets.TcpChoice`, whose sessions it has; its memory is as large
    as they need.
    """
    from ..cores.roles.catalog import PlannedRole
    from .build import shell_config

    plan = BOARD.plan if plan is None else plan
    needs = [PlannedRole(entry).needs.operand for entry in plan.roles]
    largest = max([BOARD.segment_bytes - MESSAGE_HEADER, *needs])
    segment = 1 << (largest + MESSAGE_HEADER - 1).bit_length()
    if tcp is not None:
        return _sim_board_of(tcp, plan, bridge, segment)
    sessions = BOARD.sessions
    while sessions > 1:
        sizes = {"segment_bytes": segment, "sessions": sessions}
        board = BOARD.variant(plan=plan, bridge=bridge, **sizes)
        if shell_config(board, check=False).memory.size <= board.dram_bytes // 2:
            return board
        sessions //= 2
    raise PlanError(f"the simulated board's memory is too small for segments of {segment} bytes")


def _sim_board_of(tcp, plan, bridge, segment):
    """The simulated board with the sessions of ``tcp``, and the smallest memory that takes it."""
    from .build import shell_config

    changes = {"segment_bytes": segment, **tcp.changes}
    size = BOARD.dram_bytes
    while size <= _MOST_MEMORY:
        board = BOARD.variant(plan=plan, bridge=bridge, dram_bytes=size, **changes)
        needed = shell_config(board, check=False).memory.size
        if needed <= size // 2:
            return board
        size *= 2
    raise PlanError(
        f"the simulated board has at most {_MOST_MEMORY // 2} bytes for the shell; "
        f"{board.sessions} sessions need {needed}: choose fewer with --tcp {tcp.preset}:sessions=N"
    )


def with_choices(board, plan=None, tcp=None, overrides=None):
    """``board`` with another plan, TCP engine and other values of fields, unless those are None.

    ``overrides``: an :class:`~..boards.overrides.Overrides`.
    """
    changes = {} if plan is None else {"plan": plan}
    changes |= {} if tcp is None else tcp.changes
    changes |= {} if overrides is None else overrides.values
    return board.variant(**changes) if changes else board


def choices_report(plan=None, tcp=None, overrides=None):
    """What a build's report says was chosen instead of the board file's values, by field."""
    found = {} if plan is None else {"plan": plan.describe()}
    found |= {} if tcp is None else {"tcp": tcp.preset, **tcp.values}
    return found | ({} if overrides is None else dict(overrides.values))


def tcp_of(text):
    """The :class:`~..boards.presets.TcpChoice` of option ``--tcp``, or None if it is left out."""
    return None if text is None else TcpChoice.parse(text)


def overrides_of(clock=None, ip=None, settings=None):
    """The :class:`~..boards.overrides.Overrides` of ``--clock``, ``--ip``, ``--set``, or None."""
    return Overrides.parse(clock, ip, settings or ())


def sim_address(overrides=None):
    """The simulated board's IP address with these values of its fields, which are checked."""
    found = with_choices(BOARD, overrides=overrides).ip
    if found.rpartition(".")[2] in ("0", "255"):
        raise TrebuchetError(
            f"the simulated network has 24 bits: the last number of the board's address must be 1 "
            f"to 254, not {found}"
        )
    return found


def build_label(name, plan, tcp=None, overrides=None):
    """Name of the folder that board ``name`` is built in, with other choices than its own."""
    parts = [] if plan is None else [plan_label(plan)]
    parts += [] if tcp is None else [tcp.label]
    parts += [] if overrides is None else [overrides.label]
    return "_".join((name, *parts))


def plan_label(plan):
    """A short name of a plan: its role, or a hash."""
    names = [entry.kind for entry in plan.roles]
    if len(names) == 1 and plan == Plan.of_roles(*names):
        return names[0]
    text = json.dumps(plan.describe(), sort_keys=True)
    return f"plan_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def plan_of(
    roles=(), services=(), path=None, folders=(), engines=(), board=None, probes=(), depth=None
):
    """The plan that a command's options say, or None if they say nothing.

    Parameters
    ----------
    roles : sequence of str
        ``KIND[:KEY=VALUE,…]`` each; KIND may be the folder of a role of the user's; ``none`` alone
        is a plan without roles.
    services : sequence of str
        ``PORT=FRAMING[:…]`` each; the standard ones if there are none. With ``+`` before each they
        are beside those, or without roles beside those of ``board``.
    path : path or None
        A TOML file instead of both.
    folders : sequence of path
        Folders with roles of the user's.
    engines : sequence of str
        ``PLACE=KIND[:KEY=VALUE,…]`` each; ``none`` alone: none. Without roles and services, those
        are as ``board`` has them, a board's name or file.
    probes : sequence of str
        Paths of signals for a trace core of ``depth`` records; also beside ``path``. Without roles
        and services, those are as ``board`` has them.
    """
    for folder in folders:
        add_roles(folder)
    if path is not None:
        if roles or services or engines:
            raise TrebuchetError("a plan's file says roles and services; leave out the options")
        return _with_probes(load_plan(path), probes, depth, board)
    plan = None
    more = tuple(ServiceEntry.parse(text[1:]) for text in services if text.startswith("+"))
    if more and len(more) != len(services):
        raise TrebuchetError("give all services with + before them, beside the usual ones, or none")
    if roles or (services and not more):
        roles = () if tuple(roles) == ("none",) else roles
        entries = tuple(RoleEntry.parse(_known(text)) for text in roles)
        plan = Plan(entries, () if more else tuple(map(ServiceEntry.parse, services)))
    if more:
        base = load_board(board).plan if plan is None else plan
        plan = replace(base, services=(*base.services, *more))
    if engines:
        texts = () if tuple(engines) == ("none",) else engines
        base = load_board(board).plan if plan is None else plan
        plan = replace(base, engines=tuple(map(EngineEntry.parse, texts)))
    return _with_probes(plan, probes, depth, board)


def _with_probes(plan, probes, depth, board):
    """``plan``, or that of ``board`` for None, with a trace core, if there are ``probes``."""
    if not probes:
        if depth is not None:
            raise TrebuchetError("--probe-depth is for probes; name some with --probe")
        return plan
    base = load_board(board).plan if plan is None else plan
    return replace(base, probes=ProbeSet.of(probes, depth))


def _known(text):
    """A role's text, with the name of its folder for its path."""
    kind, colon, rest = text.partition(":")
    if "/" not in kind and not kind.startswith("."):
        return text
    names = add_roles(kind)
    if len(names) != 1:
        raise TrebuchetError(
            f"{kind!r} must be the folder of one role; its roles are: {', '.join(names)}; "
            f"name the folder with --roles, and each of them with --role"
        )
    return f"{names[0]}{colon}{rest}"
