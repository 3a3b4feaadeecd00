"""The tops that can be simulated, by name, and how each is made.

=========  ======================================================================================
name       what
=========  ======================================================================================
board      the whole LiteX SoC with its firmware
bootrom    the same with a boot ROM, and its firmware in flash and external memory
fabric     the shell and a memory model, without CPU: for long protocol tests and benchmarks
unmanaged  the SoC of a board without CPU: with LiteX's MAC and memory, which ``fabric`` has not
mirror     sends back what it gets (:mod:`trebuchet.sim.mirror`): for tests of the simulator
web        the TCP engine and the web service, which serves a folder (:mod:`trebuchet.sim.web`)
wire       no board at all; the load generator talks to this machine's kernel
=========  ======================================================================================
"""

import dataclasses
from collections.abc import Callable

from ..models.errors import TrebuchetError, did_you_mean
from ..models.plan import Plan
from .build import Source

__all__ = [
    "BOARD_TOPS",
    "DEFAULT",
    "IP",
    "MAC",
    "PAGE",
    "TOPS",
    "addresses",
    "board_source",
    "fabric_source",
    "source",
    "toe_source",
]

#: Addresses of the simulated board, and the harness's defaults.
MAC = "02:00:00:00:00:02"
IP = "192.0.2.2"

#: The plan of the fabric top.
DEFAULT = Plan.of_roles("ecg")

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
_PAGE_BYTES = 1024


def _page():
    """An answer of 1 KiB with its header: the object of the paper's transactions."""
    head = _HEAD + b"Content-Length: %d\r\n\r\n"
    length = _PAGE_BYTES - len(head % 100)
    text = b"Trebuchet throws this page from its memory. " * 30
    return head % length + text[:length]


#: What the fabric top answers on TCP port 8080.
PAGE = _page()


def addresses():
    """MAC and IP address as the registers have them."""
    mac = int.from_bytes(bytes.fromhex(MAC.replace(":", "")), "little")
    return mac, int.from_bytes(bytes(map(int, IP.split("."))), "big")


def board_source(
    plan=None, peers=0, events=False, managed=True, tcp=None, boot_rom=False, overrides=None
):
    """The whole SoC of ``boards/sim.py`` with its firmware, with its own plan or another.

    ``peers``: how many other boards LTL may join it with; 0: it has no LTL. ``events``: the TCP
    engine prints its trace events. ``managed``: it has a CPU. ``tcp``: another TCP engine, a
    :class:`~trebuchet.boards.presets.TcpChoice`. ``boot_rom``: its firmware is in external memory.
    ``overrides``: other values of its fields, a :class:`~trebuchet.boards.overrides.Overrides`.
    """
    from ..soc.build import build_sim

    files = build_sim(
        plan=plan,
        peers=peers,
        events=events,
        managed=managed,
        tcp=tcp,
        boot_rom=boot_rom,
        overrides=overrides,
    )
    return Source("board", files.top, {}, files.sources, files.folder, ready_port=7)


def _boot_rom_source():
    return board_source(boot_rom=True)


def _unmanaged_source():
    return board_source(managed=False)


def _bridge_source(plan=None, events=False, tcp=None, overrides=None):
    from .bridge import bridge_source

    return bridge_source(plan, events, tcp=tcp, overrides=overrides)


def fabric_source(tcp=None, csr=None, shell=None, **memory):
    """The shell with addresses set and everything switched on.

    Parameters
    ----------
    tcp : TcpConfig or None
        The TCP engine; None for 64 sessions.
    csr : dict
        Register values beside the addresses, as in :class:`~trebuchet.sim.fabric.FabricOptions`.
    shell : dict
        Further attributes of :class:`~trebuchet.cores.shell_config.ShellConfig`; its ``plan`` is
        :data:`DEFAULT` if left out.
    memory
        ``memory_latency`` and others of :class:`~trebuchet.sim.fabric.FabricOptions`.
    """
    from ..cores.shell import Shell
    from ..cores.shell_config import ShellConfig
    from .fabric import FabricOptions, emit

    more = {"plan": DEFAULT, "configurable": False, **(shell or {})}  # there is no firmware
    config = ShellConfig(**({"tcp": tcp} if tcp else {}), **more)
    shell = Shell(config)
    mac, ip = addresses()
    registers = {
        "csr_shell": {
            "enable": 1,
            "mac": mac,
            "ip": ip,
            "page_length": len(PAGE),
        }
    }
    for member, values in (csr or {}).items():
        registers[member] = {**registers.get(member, {}), **values}
    options = FabricOptions(
        **{
            "memory_bytes": 1 << (config.base + config.memory.size - 1).bit_length(),
            "memory_init": {config.memory["page"].base: PAGE},
            "csr": registers,
            **memory,
        }
    )
    return dataclasses.replace(emit(shell, options), ready_port=7)


def toe_source(tcp, csr=None, **memory):
    """The TCP engine with services that hardly cost anything (:mod:`trebuchet.sim.toe`).

    Parameters
    ----------
    tcp : TcpConfig
        The engine; its ports are set here. The pool begins at address 0, the sessions' state, if
        it is in memory, behind it, and then comes what is answered.
    csr, memory
        As for :func:`fabric_source`.
    """
    from .fabric import FabricOptions, emit
    from .toe import OBJECTS, PORTS, Toe

    tcp = dataclasses.replace(tcp, ports=PORTS, state_base=tcp.pool_size if tcp.cache else 0)
    page = tcp.pool_size + tcp.state_size
    options = FabricOptions(
        **{
            "memory_bytes": 1 << (page + max(OBJECTS.values()) - 1).bit_length(),
            "memory_init": {page: PAGE},
            "csr": csr or {},
            **memory,
        }
    )
    return dataclasses.replace(emit(Toe(tcp, *addresses(), page), options), ready_port=8080)  # type: ignore[call-arg]


def fabric_with_plan(plan=None, events=False, tcp=None):
    """The shell with ``plan`` and ``tcp``, as large as on the simulated board with them.

    Left out they are the fabric's own plan, and 64 sessions or as many as fit.
    """
    from ..cores.tcp.config import TcpConfig
    from ..soc.plans import sim_board

    plan = DEFAULT if plan is None else plan
    board = sim_board(plan, tcp=tcp)
    engine = TcpConfig(
        width=board.data_width,
        sessions=board.sessions,
        cache=board.cache or None,
        segments=board.segments or None,
        places=board.places or None,
        segment_log2=board.segment_bytes.bit_length() - 1,
        trace=events,
    )
    return fabric_source(engine, shell={"plan": plan})


def _mirror_source():
    from .fabric import emit
    from .mirror import Mirror

    return emit(Mirror())


def _web_source():
    from .web import web_source

    return web_source()


def _wire_source():
    return Source("wire", "", {})


TOPS: dict[str, Callable] = {
    "board": board_source,
    "bridge": _bridge_source,
    "fabric": fabric_source,
    "bootrom": _boot_rom_source,
    "unmanaged": _unmanaged_source,
    "mirror": _mirror_source,
    "web": _web_source,
    "wire": _wire_source,
}


#: The tops with a TCP engine and roles, each as a function of the plan.
_PLAN_TOPS: dict[str, Callable] = {
    "board": board_source,
    "bridge": _bridge_source,
    "fabric": fabric_with_plan,
}

#: The tops that are a board of ``boards/``.
BOARD_TOPS = ("board", "bridge")


def source(name, plan=None, events=False, tcp=None, overrides=None):
    """The :class:`~trebuchet.sim.build.Source` of top ``name``, with another plan than its own.

    ``events``: its TCP engine prints what happens to its sessions. ``tcp``: another TCP engine.
    ``overrides``: other values of the board's fields, which tops without a board do not have.
    """
    if name not in TOPS:
        raise TrebuchetError(
            f"the top to simulate must be one of {', '.join(TOPS)}, "
            f"not {name!r}{did_you_mean(name, TOPS)}"
        )
    if overrides is not None and name not in BOARD_TOPS:
        raise TrebuchetError(
            f"--clock, --ip and --set are for {', '.join(BOARD_TOPS)}, whose board they change, "
            f"not for {name!r}; leave them out"
        )
    if plan is None and not events and tcp is None and overrides is None:
        return TOPS[name]()
    if name not in _PLAN_TOPS:
        tops = ", ".join(_PLAN_TOPS)
        if tcp is not None:
            raise TrebuchetError(f"only {tops} have a TCP engine of another size, not {name}")
        if plan is None:
            raise TrebuchetError(f"only {tops} have a TCP engine that tells events, not {name}")
        raise TrebuchetError(f"roles go into {tops}, not into {name!r}")
    if plan is not None and plan.engines and name != "bridge":
        raise TrebuchetError(f"engines lie in the bridge: the top must be bridge, not {name!r}")
    if plan is not None and plan.probes is not None and name not in ("board", "bridge"):
        raise TrebuchetError(f"probes are read by firmware, in board or bridge, not in {name!r}")
    if plan is None and tcp is None and name == "fabric":
        from ..cores.tcp.config import TcpConfig

        return fabric_source(TcpConfig(trace=True))
    more = {} if overrides is None else {"overrides": overrides}
    return _PLAN_TOPS[name](plan, events=events, tcp=tcp, **more)
