"""From a board's name to Verilog, firmware and bitstream."""

import contextlib
import dataclasses
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from ..boards import load_board
from ..boards.neighbours import importable
from ..boards.presets import TCP_PRESETS
from ..boards.sim import with_boot_rom, with_bridge, without_cpu
from ..boards.sim_debug import with_debug_port
from ..models.ending import catch_termination
from ..models.errors import TrebuchetError
from ..models.files import check_no_space, make_folder, writing_to
from ..models.lock import FileLock
from ..models.paths import BUILD
from .firmware import FirmwareBuilder
from .inputs import ROOT, files_of, input_hash
from .litex_errors import litex_errors, quiet_when_cut_short
from .map import MemoryMap
from .netlist import kept_netlist, synthesise
from .own_folder import check_own
from .pins import check_pins, check_xdc
from .place import Placement, pack, usage
from .placed import place_unless_kept
from .plans import build_label, choices_report, sim_board, with_choices
from .reports import IMAGE, bitstream_entries, is_whole, read_report, write_report
from .rom import fill
from .soc import TrebuchetSoC
from .toolchain import own_tools, provide_tools, require_tool, tool_names
from .unmanaged import UnmanagedSoC
from .vivado import WAIVED, check_fit, map_design, run_vivado, write_project

__all__ = [
    "ROOT",
    "SimFiles",
    "build_board",
    "build_sim",
    "build_software",
    "environment",
    "generate_locked",
    "generate_only",
    "input_hash",
    "locked",
    "make_shell",
    "shell_config",
]


def shell_config(board, trace=False, check=True):
    """The :class:`~trebuchet.cores.shell_config.ShellConfig` of a board; it must fit the memory.

    ``trace``: simulated, the TCP engine prints what happens (:mod:`~trebuchet.cores.tcp.trace`).
    ``check``: False if whoever asks sees to it that the memory is large enough.
    """
    from ..cores.shell_config import ShellConfig
    from ..cores.tcp import config as engines

    memory_map = MemoryMap(board.dram_bytes)
    engine = getattr(engines, TCP_PRESETS[board.tcp].engine)
    tcp = dataclasses.replace(
        engine,
        width=board.data_width,
        sessions=board.sessions,
        cache=board.cache or None,
        segments=board.segments or None,
        places=board.places or None,
        half_open=None,
        counter_width=board.counter_width,
        lut_ram=board.lut_ram,
        programmable=board.programmable,
        active=board.active,
        inspect=board.inspect,
        trace=trace,
        segment_log2=board.segment_bytes.bit_length() - 1,
        isn_key=board.isn_key or engine.isn_key,
    )
    try:
        config = ShellConfig(
            tcp=tcp,
            base=memory_map.base,
            plan=board.plan,
            peers=board.peers,
            managed=board.has_cpu,
            drive=board.drive != "none",
        )
        needed = config.memory.size
    except TrebuchetError as error:
        raise TrebuchetError(f"board {board.name!r}: {error}") from error
    except ValueError as error:  # a role whose results peers cannot have at this segment size
        raise TrebuchetError(
            f"board {board.name!r}: its roles with segment_bytes={board.segment_bytes} "
            f"and peers={board.peers}: {error}"
        ) from error
    if check and needed > memory_map.size:
        raise TrebuchetError(
            f"board {board.name!r}: {board.sessions} sessions need {needed} bytes of "
            f"external memory; {memory_map.size} are the shell's; "
            f"{config.memory['results'].size} hold results of up to {config.result_room} bytes"
        )
    return config


def make_shell(board, trace=False):
    """The shell of a board; for ``trace`` see :func:`shell_config`."""
    from ..cores.shell import Shell

    return Shell(shell_config(board, trace))


@contextlib.contextmanager
def environment(directory):
    """Tools on PATH; an outer make's job server, which LiteX's inner ones cannot use, hidden."""
    saved = dict(os.environ)
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        os.environ.pop(name, None)
    try:
        provide_tools(directory / "bin")
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


@contextlib.contextmanager
def locked(directory):
    """Builds in the same folder wait for each other; the second finds the first's result.

    A build that SIGTERM or SIGHUP ends takes the tools that it runs with it.
    """
    if directory == directory.parent:
        raise TrebuchetError(
            f"a build needs a folder of its own, not {directory}; choose another folder"
        )
    check_no_space(directory)
    with FileLock(directory.with_name(f"{directory.name}.lock")):
        make_folder(directory)
        with catch_termination():
            yield


def _build_soc(board, shell, directory, software=True, **options):
    """Generate the SoC and its scripts, and build its firmware."""
    software = software and board.has_cpu
    for tool in ("make", "riscv64-unknown-elf-gcc") if software else ():
        require_tool(tool)

    make = TrebuchetSoC if board.has_cpu else UnmanagedSoC
    with quiet_when_cut_short(), importable(board.source):
        shell = shell or make_shell(board)
        with litex_errors(board, directory / "litex.log"):
            soc = make(board, shell, directory / "gateware")
            builder = FirmwareBuilder(
                soc,
                output_dir=str(directory),
                csr_svd=str(directory / "csr.svd"),
                compile_software=software,
            )
            builder.build(build_name=soc.platform.name, run=False, **options)
    return soc


# --- simulation --------------------------------------------------------------------------------


@dataclass(frozen=True)
class SimFiles:
    """The simulated board as Verilog.

    Attributes
    ----------
    top : str
        Name of the top module; its ports are described in ``boards/sim.py``.
    sources : tuple of Path
        Verilog files.
    memories : tuple of Path
        Initial contents of memories; the Verilog names them without a folder.
    folder : Path
        Where those lie: the simulator's working folder.
    """

    top: str
    sources: tuple
    memories: tuple
    folder: Path


def build_sim(
    directory=None,
    shell=None,
    name="sim",
    plan=None,
    peers=0,
    debug=False,
    events=False,
    managed=True,
    bridge=False,
    tcp=None,
    boot_rom=False,
    overrides=None,
):
    """Generate Verilog and firmware of a simulated board; return its :class:`SimFiles`.

    A finished build with the same inputs is used again.

    Parameters
    ----------
    directory : path
        Where to build; ``build/NAME`` by default, with a plan ``build/NAME_PLAN``, with peers
        ``…_peersN``. Not below ``/tmp`` or ``/share``.
    shell : wiring.Component
        Something else than the shell inside; such a build is always done anew.
    plan : Plan
        Other roles and services than the board's own, with sizes that suit them.
    peers : int
        Other boards that this one may be joined with by LTL; 0: the shell has no LTL.
    debug : bool
        The CPU has its debug port (``boards/sim_debug.py``); the build is ``…_debug``.
    events : bool
        The TCP engine prints its trace events; the build is ``…_events``. Not with ``shell``.
    managed : bool
        It has a CPU with firmware; if not, the build is ``…_unmanaged``, and there are neither
        ``peers`` nor ``debug``.
    bridge : bool
        It lies between a host and the network; the build is ``…_bridge``.
    tcp : TcpChoice
        Another TCP engine, and memory for it; the build is ``build/NAME_PLAN_TCP``.
    boot_rom : bool
        Its firmware is in external memory, where a boot ROM puts it; the build is ``…_bootrom``.
    overrides : Overrides
        Other values of its fields, in the build's name.
    """
    if events and shell is not None:
        raise TrebuchetError("a shell that is given prints events or not by itself")
    sized = plan is not None or tcp is not None
    board = sim_board(plan, bridge, tcp) if sized else load_board(name)
    source = board.source
    label = build_label(board.name, plan, tcp, overrides)
    own = () if board.source is None else (files_of(board),)
    board = with_choices(board, overrides=overrides)
    if not managed:
        board, label = without_cpu(board), f"{label}_unmanaged"
    if peers:
        board, label = dataclasses.replace(board, peers=peers), f"{label}_peers{peers}"
    if debug:
        board = with_debug_port(board)
        label += "_debug"
    if bridge:
        board = with_bridge(board)
        label += "_bridge"
    if boot_rom:
        board = with_boot_rom(board)
        label += "_bootrom"
    label += "_events" if events else ""
    directory = Path(directory or BUILD / label).resolve()
    described = () if tcp is None and overrides is None else (board.describe(),)
    options = ("sim", label, board.plan.describe(), *own, *described)
    with locked(directory), importable(source):
        return _build_sim(directory, shell, board, events, options)


def _build_sim(directory, shell, board, events, options):
    stamp = directory / "sim.json"
    inputs = None if shell is not None else input_hash(*options)
    if inputs is not None:
        found = read_report(stamp)
        if found.get("inputs") == inputs:
            files = [*found["sources"], *found["memories"]]
            if all(Path(f).exists() for f in files):
                return _sim_files(found, directory)
    with environment(directory):
        soc = _build_soc(board, shell or make_shell(board, trace=events), directory)
    gateware = directory / "gateware"
    found = {
        "inputs": inputs,
        "top": soc.platform.name,
        "sources": [
            str(soc.platform.verilog_path),
            *(source[0] for source in soc.platform.sources),
        ],
        "memories": sorted(str(path) for path in gateware.glob("*.init")),
    }
    write_report(stamp, found)
    return _sim_files(found, directory)


def _sim_files(found, directory):
    return SimFiles(
        top=found["top"],
        sources=tuple(map(Path, found["sources"])),
        memories=tuple(map(Path, found["memories"])),
        folder=directory / "gateware",
    )


#: LiteX's options for real boards, and by flow.
_FLOW_OPTIONS = {"timingstrict": True, "nowidelut": True}
_OPTIONS = {"trellis": _FLOW_OPTIONS, "vivado": {}}

# --- boards ------------------------------------------------------------------------------------


def build_board(
    name,
    directory=None,
    shell=None,
    synth_only=False,
    seeds=None,
    fresh=False,
    plan=None,
    tcp=None,
    overrides=None,
):
    """Build the bitstream of a board, or with ``synth_only`` its netlist; return the report.

    Of a board of flow ``vivado`` it is a project, ``vivado`` in the build's folder, and a bitstream
    if Vivado is installed and not ``synth_only``; else open tools check the design.

    The report (also ``report.json`` in the build's folder, of a netlist alone ``synthesis.json``)
    says what is used of the FPGA, the largest frequency of every clock, the hash of the inputs, how
    long it took, the memory of the tool that took most, the tools' versions and the bitstream's
    SHA-256. A finished build with the same inputs is used again unless ``fresh``. The build fails
    when a clock misses its frequency.

    While the netlist is the same, other firmware is put into what was placed before, unless
    ``fresh``; then ``placement_kept`` is true in the report. Logic that is the same is kept, too.

    Parameters
    ----------
    name : str
        A board, or the path of a board file.
    seeds : sequence of int
        Seeds of place and route, of which the one with the fastest system clock is kept; the
        board's own if left out. It is enough that one of several comes to an end.
    plan, tcp, overrides : Plan, TcpChoice, Overrides or None
        Other roles and services, TCP engine and values of fields than the board file's; all are in
        the folder's name (``build/NAME_PLAN_TCP_OVERRIDES``) and in the report (``overrides``).
    """
    board = with_choices(load_board(name), plan, tcp, overrides)
    if board.flow == "sim":
        raise TrebuchetError(f"board {name!r} is simulated; run it with: trebuchet sim")
    chosen = choices_report(plan, tcp, overrides)
    directory = directory or BUILD / build_label(board.name, plan, tcp, overrides)
    directory = Path(directory).resolve()
    with locked(directory):
        if board.flow == "vivado":
            return _build_project(board, directory, shell, synth_only, fresh, chosen)
        return _build_board(board, directory, shell, synth_only, tuple(seeds or ()), fresh, chosen)


def build_software(name, directory=None):
    """Register maps and firmware of a board, no bitstream; return the folder they lie in.

    That of the simulated board is :func:`build_sim`'s, else ``build/NAME_software``. A finished
    build with the same inputs is used again.
    """
    board = load_board(name)
    if not board.has_cpu:
        raise TrebuchetError(f"board {board.name!r} has no processor, and so no firmware")
    if board.flow == "sim":
        return build_sim(directory, name=name).folder.parent
    directory = Path(directory or BUILD / f"{board.name}_software").resolve()
    stamp = directory / "software.json"
    inputs = input_hash("software", board.describe(), files_of(board))
    with locked(directory):
        if read_report(stamp).get("inputs") != inputs:
            stamp.unlink(missing_ok=True)
            with environment(directory):
                _build_soc(board, None, directory)
            write_report(stamp, {"inputs": inputs})
    return directory


def _placement(board, soc, directory):
    name = soc.platform.name
    return Placement(directory / "gateware", name, board.sys_clk_hz, board.router)


def generate_only(board, directory):
    """Generate the SoC of a board without its firmware; return the :class:`Placement`."""
    directory = Path(directory).resolve()
    with locked(directory):
        return generate_locked(board, directory)


def generate_locked(board, directory, software=False):
    """:func:`generate_only` in a folder that the caller has :func:`locked`; firmware if asked."""
    with environment(directory):
        soc = _build_soc(board, None, directory, software=software, **_OPTIONS[board.flow])
        return _placement(board, soc, directory)


def _finished(board, path, options, fresh):
    """Hash of a build's inputs, and a finished report of the same inputs, which is in ``path``.

    An unfinished one is removed. ``options`` None: there is no hash, and the build is always done
    anew.
    """
    inputs = None
    if options is not None:
        inputs = input_hash(board.describe(), files_of(board), *options)
    if inputs is not None and not fresh:
        report = read_report(path)
        if report.get("inputs") == inputs and is_whole(report):
            return inputs, report
    with writing_to(path):
        path.unlink(missing_ok=True)
    return inputs, None


def _build_board(board, directory, shell, synth_only, seeds, fresh, chosen):
    seeds = seeds or (board.seed,)
    names = ("yosys",) if synth_only else ("yosys", "nextpnr-ecp5", "ecppack")
    tools = own_tools(names)
    options = None if shell is not None else (synth_only, seeds, *tools.items())
    # Synthesis alone leaves a bitstream as it is, and so its report.
    report_path = directory / ("synthesis.json" if synth_only else "report.json")
    inputs, report = _finished(board, report_path, options, fresh)
    if report is not None:
        return report
    began = time.monotonic()
    kept = False
    with environment(directory):
        for name in names:
            require_tool(name)
        soc = _build_soc(board, shell, directory, **_FLOW_OPTIONS)
        placement = _placement(board, soc, directory)
        seed = application = None
        if synth_only:
            if fresh or kept_netlist(placement) is None:
                check_pins(placement)
                synthesise(placement)
        else:
            seed, kept = place_unless_kept(placement, board, seeds, fresh)
            fill(placement, soc.firmware)
            application = pack(placement, board)
    image = directory / IMAGE
    report = {
        "board": board.name,
        "inputs": inputs,
        "device": board.device,
        "overrides": chosen,
        "tools": tool_names(names, tools),
        "seed": seed,
        "seeds": {str(tried): mhz for tried, mhz in placement.reached.items()},
        "placement_kept": kept,
        **usage(placement, routed=not synth_only),
        "lut4_available": board.lut4_budget,
        **bitstream_entries(None if synth_only else placement.path(".bit")),
        "application": None if application is None else str(application),
        "firmware": str(image) if board.boot_rom and image.exists() else None,
        "floorplan": None if synth_only else str(placement.path(".svg")),
        "minutes": round((time.monotonic() - began) / 60, 2),
        "peak_bytes": max(placement.peaks, default=0),
    }
    write_report(report_path, report)
    return report


def _build_project(board, directory, shell, synth_only, fresh, chosen):
    with_vivado = not synth_only and shutil.which("vivado") is not None
    flow = ("vivado",) if with_vivado else ("open", *own_tools(["yosys"]).items())
    options = None if shell is not None else flow
    target, checked = directory / "vivado", directory / "check"
    for folder in (target, target.with_name("vivado.partial"), checked):
        check_own(folder)
    report_path = directory / "report.json"
    inputs, report = _finished(board, report_path, options, fresh)
    if report is not None:
        return report
    with environment(directory):
        soc = _build_soc(board, shell, directory)
        placement = _placement(board, soc, directory)
        check_xdc(placement, board.device)
        if not with_vivado:
            used = map_design(placement, board.capacity, checked)
            check_fit(board, used)
        chip = board.flash.part if board.flash is not None else ""
        project = write_project(placement, board.device, target, chip)
        if with_vivado:
            used = run_vivado(project)
    report = {
        "board": board.name,
        "inputs": inputs,
        "device": board.device,
        "overrides": chosen,
        "tools": ["vivado"] if with_vivado else ["yosys", "verilator"],
        "project": str(target),
        "used": used,
        "available": {name: getattr(board.capacity, name) for name in used},
        "lint_waived": {} if with_vivado else WAIVED,
        **bitstream_entries(project.path(".bit") if with_vivado else None),
        "application": str(project.path("_application.bin")) if with_vivado and chip else None,
    }
    write_report(report_path, report)
    return report
