"""What is wrong with a board file, found before anything is built."""

from ..boards import load_board
from ..cores.engines.catalog import PlannedEngine
from ..models.paths import BUILD
from .build import environment, generate_locked, locked, shell_config
from .netlist import synthesise
from .pins import check_pins, check_xdc
from .place import check_room, usage
from .plans import sim_board, with_choices
from .vivado import check_fit, map_design

__all__ = ["SPARE", "check"]

#: Share of the LUTs that should stay free: a fuller device is routed slowly, or not at all.
SPARE = 0.1


def check(name, fit=False, plan=None, tcp=None, overrides=None):
    """Yield ``(what, finding)`` of each step that a board file passes; raise at the first fault.

    Nothing is compiled or synthesised, which takes half a minute; with ``fit`` the netlist is made
    as well, to say how much of the FPGA it takes: some minutes. ``plan``: other roles and services
    than the board's own; ``tcp``: another TCP engine; ``overrides``: other values of fields. No
    other check uses the folder meanwhile, ``build/NAME.check``: no board's name has a dot.
    """
    board = load_board(name)
    grows = board.flow == "sim" and tcp is not None
    board = sim_board(plan, tcp=tcp) if grows else with_choices(board, plan, tcp)
    board = with_choices(board, overrides=overrides)
    yield "board file", f"{board.title}: {board.device}, {board.sys_clk_hz / 1e6:g} MHz"
    config = shell_config(board)
    free = board.dram_bytes // 2 - config.memory.size
    roles = ", ".join(entry.name for entry in board.plan.roles) or "none"
    where = f", {board.cache} of them on chip" if board.cache else ""
    sizes = f"{board.sessions} TCP sessions (preset {board.tcp}{where}), roles {roles}"
    yield "sizes", f"{sizes}, results of up to {config.result_room} bytes, {free >> 20} MiB unused"
    engines = [PlannedEngine(entry).name for entry in board.plan.engines]
    if engines:
        yield "engines", f"in the bridge: {', '.join(engines)}"
    if board.flow == "sim":
        return
    directory = BUILD / f"{board.name}.check"
    with locked(directory):
        yield from _check_generated(board, directory, fit)


def _check_generated(board, directory, fit):
    """The further steps, of the SoC that is generated in a folder."""
    placement = generate_locked(board, directory)
    console = ", console" if board.has_cpu else "; there is no processor"
    yield "platform", f"the SoC was generated: clocks, memory, Ethernet{console}"
    if board.flow == "vivado":
        yield from _check_vendor(board, placement, directory, fit)
        return
    with environment(directory):
        check_pins(placement)
    yield "pins", "all are on the package, none is used twice"
    if not board.loader:
        yield "loader", "none: `trebuchet load` will not know the board"
    if board.flash is None:
        yield "flash", "none: no configuration and no images are kept on the board"
    if not fit:
        return
    with environment(directory):
        synthesise(placement)
    found = usage(placement, routed=False)
    check_room(board, found)
    used = found["lut4"]
    share = used / board.lut4_budget
    advice = "" if share <= 1 - SPARE else "; a device so full may not be routed"
    yield "fit", f"{used} of {board.lut4_budget} LUTs, {share:.0%}{advice}"


def _check_vendor(board, placement, directory, fit):
    """The further steps of a board of flow ``vivado``."""
    check_xdc(placement, board.device)
    yield "pins", "each port has one on the package's grid, none is shared; Vivado knows the rest"
    if board.flash is None:
        yield "flash", "none: no configuration and no images are kept on the board"
    if not fit:
        return
    with environment(directory):
        used = map_design(placement, board.capacity, directory / "check")
    check_fit(board, used)
    shares = (f"{n.upper()} {used[n] / getattr(board.capacity, n):.1%}" for n in used)
    yield "fit", ", ".join(shares)
