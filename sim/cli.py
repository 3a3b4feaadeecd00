"""``trebuchet sim``: the simulated board on a network of its own."""

import contextlib
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..models.errors import TrebuchetError
from ..models.files import check_files
from ..models.steps import Step
from ..soc.plan_options import (
    ClockOption,
    EngineOption,
    IpOption,
    PlanOption,
    ProbeDepthOption,
    ProbeOption,
    RoleOption,
    RolesOption,
    ServiceOption,
    SetOption,
    TcpOption,
)
from ..soc.plans import overrides_of, plan_of, sim_address, tcp_of
from .bridge import BridgeBoard
from .build import build
from .fleet.cli import choose, run_fleet
from .gdb.run import debug_files, debugged
from .host_tap import host_tap
from .options import (
    FLASH_BYTES,
    check_chances,
    check_drive,
    check_flash,
    check_gdb,
    check_sd,
    check_time,
    check_trace,
    check_uart,
    check_web,
)
from .process import shell_code
from .run import Board
from .running import Running, announced
from .shell import enter
from .tops import BOARD_TOPS, TOPS, source
from .wave_views import write_views
from .waves import require_waves

__all__ = ["sim"]

#: Exit code of a command that Ctrl-C ended.
INTERRUPTED = 130

#: Of options that count cycles: more than any simulation has.
MOST_CYCLES = 1_000_000_000_000

_PANEL = "Link, both ways"
_Chance = Annotated[
    str | None,
    typer.Option(metavar="P", rich_help_panel=_PANEL, help="Chance per frame, 0.03 or 3%."),
]


def _link_arguments(options):
    return [word for name, value in options.items() if value for word in (f"--{name}", value)]


def _absolute(path):
    return str(path.resolve())


def _compile(top, plan, tcp, overrides, trace, debug, events):
    if debug and events:
        raise TrebuchetError("--gdb and --events exclude each other; leave one of them out")
    if debug and tcp is not None:
        raise TrebuchetError("--gdb and --tcp exclude each other; leave one of them out")
    if debug and overrides is not None:
        raise TrebuchetError("--gdb excludes --clock, --ip and --set; leave one of them out")
    with Step("generating the Verilog", 60, late=True):
        files = debug_files(top, plan) if debug else None
        made = files.source if files else source(top, plan, events, tcp, overrides)
    with Step("compiling the simulator, once for each version of it", 60, late=True):
        return made, build(made, trace=trace), files


def _announce(board, tap, console):
    where = (
        f"on device {tap} of this machine"
        if tap
        else "a shell on its network, from another terminal: trebuchet sim shell"
    )
    console.print(f"The board is at [bold]{board.ip}[/bold]; {where}")
    if isinstance(board, BridgeBoard):
        console.print(
            f"The host behind it is {board.behind_ip}; a shell there: {board.inside_host()}"
        )
    if board.uart_device:
        console.print(f"Its UART: {board.uart_device}")
    console.print("Ctrl-C ends it.")


def _refuse_for_many(top, options, links):
    """Several boards are of one kind, and have their links from a topology file."""
    if top != "board":
        raise TrebuchetError(f"several boards must be of top board, not {top!r}")
    for name, value in options.items():
        if value:
            raise TrebuchetError(
                f"{name} is for one board; leave it out with --boards and --topology"
            )
    for name, value in links.items():
        if value:
            raise TrebuchetError(
                f"--{name} is for one board; links of several are described in a --topology file"
            )


def sim(
    top: Annotated[
        str,
        typer.Argument(
            metavar="TOP",
            help=f"What to simulate: {', '.join(TOPS)}; or shell: enter the network of a "
            "simulation that runs.",
        ),
    ] = "board",
    fabric: Annotated[
        bool, typer.Option("--fabric", help="The same as TOP = fabric: the shell without CPU.")
    ] = False,
    role: RoleOption = None,
    service: ServiceOption = None,
    engine: EngineOption = None,
    plan: PlanOption = None,
    roles: RolesOption = None,
    tcp: TcpOption = None,
    clock: ClockOption = None,
    ip: IpOption = None,
    set_: SetOption = None,
    probe: ProbeOption = None,
    probe_depth: ProbeDepthOption = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="CMD",
            help="Run this on the board's network, then end. With a bridge, $TREBUCHET_ON_HOST "
            "before a command runs it on the host behind the board.",
        ),
    ] = None,
    uart: Annotated[
        str | None,
        typer.Option(metavar="WHERE", help="stdio, stdout, pty, file:PATH or none."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 1,
    tap: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Connect it to this TAP device of the machine, made if not there, instead of "
            "a network of its own.",
        ),
    ] = None,
    time: Annotated[
        str,
        typer.Option(help="Protocol milliseconds: wall, cycles:N, or soc (the board's divider)."),
    ] = "wall",
    pcap: Annotated[Path | None, typer.Option(help="Capture the link.")] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Write waves (FST), with save files for their viewers.")
    ] = None,
    flash: Annotated[
        Path | None, typer.Option(help="Contents of the board's flash, kept; made if not there.")
    ] = None,
    drive: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Give the board a drive with these sectors, kept."),
    ] = None,
    drive_latency: Annotated[
        int, typer.Option(min=0, help="Cycles from a command to the drive's first data.")
    ] = 1000,
    drive_rate: Annotated[
        float, typer.Option(min=0.001, help="Bytes that the drive moves in a cycle.")
    ] = 1,
    drive_bad: Annotated[
        str | None, typer.Option(metavar="LBA[+N]", help="Sectors that cannot be read.")
    ] = None,
    sd: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Give the board a slot with this card, kept."),
    ] = None,
    trace_from: Annotated[int, typer.Option(min=0, help="First cycle of the waves.")] = 0,
    stats: Annotated[Path | None, typer.Option(help="Write statistics (JSON).")] = None,
    events: Annotated[
        Path | None, typer.Option(help="Write what happens to each TCP session, a line an event.")
    ] = None,
    loss: _Chance = None,
    duplicate: _Chance = None,
    reorder: _Chance = None,
    corrupt: _Chance = None,
    delay: Annotated[
        int,
        typer.Option(
            min=0, max=MOST_CYCLES, rich_help_panel=_PANEL, help="Cycles a frame is under way."
        ),
    ] = 0,
    boards: Annotated[
        int | None, typer.Option(min=1, max=16, help="So many boards, on a switch.")
    ] = None,
    topology: Annotated[
        Path | None, typer.Option(help="Boards, links and connections (YAML).")
    ] = None,
    max_rate: Annotated[
        float,
        typer.Option(min=0, max=MOST_CYCLES, help="Simulate no more cycles a second; 0: no limit."),
    ] = 0,
    gdb: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve GDB for the firmware on this port (0: any free one); docs/debugging.md.",
        ),
    ] = None,
    web: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Serve these files over HTTP at port 80; TOP is web."),
    ] = None,
    busy: Annotated[
        bool, typer.Option("--busy", help="Don't sleep while nothing happens.")
    ] = False,
    pid: Annotated[
        int | None, typer.Option(help="With shell, if several simulations run: which one.")
    ] = None,
) -> None:
    """Run the simulated board on a network of its own.

    From another terminal, `trebuchet sim shell` enters that network. Several simulations may run at
    a time: each has its own network, with the same addresses.
    """
    if top == "shell":
        raise typer.Exit(enter(pid, command))
    if pid is not None:
        raise TrebuchetError("--pid says which network `trebuchet sim shell` enters; leave it out")
    # A polite kill takes the clean way out, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    links = {"loss": loss, "duplicate": duplicate, "reorder": reorder, "corrupt": corrupt}
    written = {"pcap": pcap, "trace": trace, "stats": stats, "events": events, "flash": flash}
    check_chances(links)
    check_files(written)
    check_trace(trace)
    check_time(time)
    check_uart(uart)
    check_drive(drive, drive_bad)
    check_sd(sd, drive)
    check_flash(flash, FLASH_BYTES)
    check_gdb(gdb)
    if command is not None and not command.strip():
        raise TrebuchetError("--exec must be a command, not ''; leave it out to run until Ctrl-C")
    if fabric and top not in ("board", "fabric"):
        raise TrebuchetError(f"--fabric is another top than {top!r}; leave one of them out")
    on_host = None if tap is None else host_tap(tap)
    top = _web_top("fabric" if fabric else top, web)
    check_web(web)
    chosen = plan_of(
        role or (), service or (), plan, roles or (), engine or (), "sim", probe or (), probe_depth
    )
    media = {"drive=stream": drive, "drive=sd": sd}
    settings = [*(set_ or ()), *(setting for setting, path in media.items() if path)]
    overrides = overrides_of(clock, ip, settings)
    address = sim_address(overrides)
    if chosen is not None and chosen.engines and top == "board" and not fabric:
        top = "bridge"  # where they lie
    for option, path in (("--drive", drive), ("--sd", sd)):
        if path and top not in BOARD_TOPS:
            raise TrebuchetError(f"{option} is for the tops {', '.join(BOARD_TOPS)}, not for {top}")
    if boards is not None or topology is not None:
        one_only: dict[str, object] = {
            "--pcap": pcap,
            "--trace": trace,
            "--trace-from": trace_from,
            "--stats": stats,
            "--events": events,
            "--uart": uart,
            "--flash": flash,
            "--drive": drive,
            "--sd": sd,
            "--gdb": gdb is not None,
            "--max-rate": max_rate,
            "--tap": tap,
            "--tcp": tcp,
            "--clock": clock,
            "--ip": ip,
            "--set": set_,
            "--web": web,
        }
        _refuse_for_many("fabric" if fabric else top, one_only, {**links, "delay": delay})
        many = choose(boards, topology)
        code = run_fleet(many, command, seed=seed, time_mode=time, busy=busy, plan=chosen)
        raise typer.Exit(code)
    if trace_from and trace is None:
        raise TrebuchetError("--trace-from is the first cycle of --trace; give that too")
    console = Console(stderr=True)
    top = "fabric" if fabric else top
    if on_host and top == "bridge":
        raise TrebuchetError("--tap is for boards with one port, not for the top bridge")
    made, binary, files = _compile(
        top,
        chosen,
        tcp_of(tcp),
        overrides,
        trace is not None,
        gdb is not None,
        events is not None,
    )
    arguments = ["--seed", str(seed)]
    arguments += _link_arguments(links)
    arguments += ["--delay", str(delay), "--max-rate", str(max_rate)]
    for name, path in (("pcap", pcap), ("trace", trace), ("stats", stats), ("events", events)):
        arguments += [f"--{name}", _absolute(path)] if path else []
    arguments += ["--trace-from", str(trace_from)] if trace else []
    arguments += _drive_arguments(drive, drive_latency, drive_rate, drive_bad) if drive else []
    arguments += ["--sd", _absolute(sd)] if sd else []
    uart = uart or ("none" if made.kind == "fabric" else "log" if command else "stdio")
    with ExitStack() as stack:
        folder = stack.enter_context(_files(web, console)) if web else made.folder
        options = {"uart": uart, "time": time, "cwd": folder, "flash": flash, "ip": address}
        options["tap"] = on_host
        if files and gdb is not None:
            board, server = stack.enter_context(
                debugged(binary, files, gdb, arguments=arguments, **options)
            )
            console.print(f"GDB: gdb-multiarch {files.elf} -ex 'target remote :{server.port}'")
        else:
            kind = BridgeBoard if made.kind == "bridge" else Board
            board = stack.enter_context(kind(binary, arguments, busy=busy, **options))
        if command is None:
            _announce(board, tap, console)
            running = Running(os.getpid(), top, board.inside(), _environment(board))
            with announced(running):
                board.wait_for_end()
            _finish_waves(trace, console)
            return
        if made.ready_port:
            with console.status("The board starts …"):
                _wait_ready(board, made.ready_port)
        code = _execute(board, command)
        if code != INTERRUPTED and board.close():
            raise TrebuchetError(f"the simulator reported a fault: {board.last_words}")
    _finish_waves(trace, console)
    raise typer.Exit(code)


def _drive_arguments(path, latency, rate, bad):
    words = ["--drive", _absolute(path), "--drive-latency", str(latency), "--drive-rate", str(rate)]
    return words + ([] if bad is None else ["--drive-bad", bad])


def _finish_waves(trace, console):
    """Check that the waves are whole, and write what viewers need to show them."""
    if trace is None:
        return
    require_waves(trace)
    for_gtkwave, for_surfer = write_views(trace)
    console.print(f"Waves: gtkwave {for_gtkwave}; or: surfer --command-file {for_surfer} {trace}")


def _web_top(top, web):
    """The top that ``--web`` asks for."""
    if web is None and top == "web":
        raise TrebuchetError("the top web serves a folder: name it with --web FOLDER")
    if web is not None and top not in ("web", "board"):
        raise TrebuchetError(f"--web is for the top web, not {top}; leave one of them out")
    return top if web is None else "web"


@contextlib.contextmanager
def _files(folder, console):
    from .web import web_folder

    with web_folder(folder) as (where, image):
        for path in sorted(image.left_out):
            console.print(f"Left out, as its path has more than 96 bytes: {path.decode()}")
        yield where


def _wait_ready(board, port):
    """Wait for the board; if it ended, raise the reason of that, not that it does not answer."""
    try:
        board.wait_port(port)
    except TrebuchetError:
        board.wait(1)
        board.check()
        raise


def _environment(board):
    """What a command on the board's network is told."""
    told = {"TREBUCHET_BOARD": board.ip}
    if isinstance(board, BridgeBoard):
        told["TREBUCHET_ON_HOST"] = board.inside_host()
    return told


def _execute(board, command):
    """Run a command on the board's network; return its exit code. It ends with the board."""
    child = board.popen(["sh", "-c", command], env={**os.environ, **_environment(board)})
    try:
        while True:
            try:
                return shell_code(child.wait(timeout=1))
            except subprocess.TimeoutExpired:
                board.check()
    except KeyboardInterrupt:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=5)
        return INTERRUPTED
