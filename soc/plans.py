"""From a plan to what is built: sizes of the simulated board, and plans of the command line."""

import hashlib
import json
from dataclasses import replace

from ..boards import load_board
from ..boards.presets import TcpChoice
from ..boards.sim import BOARD
from ..models.errors import TrebuchetError
from ..models.plan import EngineEntry, Plan, PlanError, RoleEntry, ServiceEntry, load_plan
from ..models.role_folders import add_roles
from ..models.smp_framing import MESSAGE_HEADER

__all__ = ["build_label", "plan_label", "plan_of", "sim_board", "tcp_of", "with_choices"]

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


def with_choices(board, plan=None, tcp=None):
    """``board`` with another plan and another TCP engine, unless those are None."""
    changes = {} if plan is None else {"plan": plan}
    changes |= {} if tcp is None else tcp.changes
    return board.variant(**changes) if changes else board


def tcp_of(text):
    """The :class:`~..boards.presets.TcpChoice` of option ``--tcp``, or None if it is left out."""
    return None if text is None else TcpChoice.parse(text)


def build_label(name, plan, tcp=None):
    """Name of the folder that board ``name`` is built in, with another plan and TCP engine."""
    parts = [] if plan is None else [plan_label(plan)]
    parts += [] if tcp is None else [tcp.label]
    return "_".join((name, *parts))


def plan_label(plan):
    """A short name of a plan: its role, or a hash."""
    names = [entry.kind for entry in plan.roles]
    if len(names) == 1 and plan == Plan.of_roles(*names):
        return names[0]
    text = json.dumps(plan.describe(), sort_keys=True)
    return f"plan_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def plan_of(roles=(), services=(), path=None, folders=(), engines=(), board=None):
    """The plan that a command's options say, or None if they say nothing.

    Parameters
    ----------
    roles : sequence of str
        ``KIND[:KEY=VALUE,…]`` each; KIND may be the folder of a role of the user's; ``none`` alone
        is a plan without roles.
    services : sequence of str
        ``PORT=FRAMING[:ROLE]`` each; the standard ones if there are none.
    path : path or None
        A TOML file instead of both.
    folders : sequence of path
        Folders with roles of the user's.
    engines : sequence of str
        ``PLACE=KIND[:KEY=VALUE,…]`` each; ``none`` alone: none. Without roles and services, those
        are as ``board`` has them, a board's name or file.
    """
    for folder in folders:
        add_roles(folder)
    if path is not None:
        if roles or services or engines:
            raise TrebuchetError("a plan's file says roles and services; leave out the options")
        return load_plan(path)
    plan = None
    if roles or services:
        roles = () if tuple(roles) == ("none",) else roles
        entries = tuple(RoleEntry.parse(_known(text)) for text in roles)
        plan = Plan(entries, tuple(map(ServiceEntry.parse, services)))
    if engines:
        texts = () if tuple(engines) == ("none",) else engines
        base = load_board(board).plan if plan is None else plan
        plan = replace(base, engines=tuple(map(EngineEntry.parse, texts)))
    return plan


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
