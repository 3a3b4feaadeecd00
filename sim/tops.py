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

from collections.abc import Callable

from ..models.errors import TrebuchetError, did_you_mean
from .build import Source

__all__ = ["BOARD_TOPS", "TOPS", "board_source", "source"]


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


def _fabric_source():
    from .fabric import fabric_source

    return fabric_source()


def _fabric_with_plan(plan=None, events=False, tcp=None):
    from .fabric import fabric_with_plan

    return fabric_with_plan(plan, events=events, tcp=tcp)


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
    "fabric": _fabric_source,
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
    "fabric": _fabric_with_plan,
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
        from .fabric import fabric_source

        return fabric_source(TcpConfig(trace=True))
    more = {} if overrides is None else {"overrides": overrides}
    return _PLAN_TOPS[name](plan, events=events, tcp=tcp, **more)
