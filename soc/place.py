"""From a board's Verilog to its bitstream: the tools of LiteX's script, run one by one."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from ..boards.ecp5_devices import ecp5_device
from ..models.ending import start_group
from ..models.errors import TrebuchetError
from .convergence import no_end_in_sight
from .multiboot import marked
from .netlist import names_of
from .rom import PLACED
from .synthesis import clocks_faster_than, map_for_area, with_local_sources
from .timing import clock_name
from .toolchain import PLACE_AND_ROUTE

__all__ = ["LEAVE_OUT", "ROOM", "ClocksMissed", "Placement", "check_room", "pack", "place"]
__all__ += ["place_once", "seeds_at_once", "usage", "usage_of"]

#: What to do when a board's FPGA is too small.
LEAVE_OUT = (
    "leave something out: roles of the plan, active=False, inspect=False, udp_services=False, "
    "counter_width=16, programmable=False"
)

#: How far a PLL's clock may be from what was asked (LiteX's), as a share of it.
PLL_MARGIN = 0.01

#: Memory for one place and route, in bytes; a full 85F takes 1.6 GiB.
ROOM = 3 << 30

#: Seconds between looks at the log of a tool that might not come to an end.
WATCH = 0.5


class ClocksMissed(TrebuchetError):
    """A design was routed, but not for its clocks; ``report`` is the path of nextpnr's report."""

    def __init__(self, text, report, mhz=None, share=0.0):
        super().__init__(text)
        self.report = report
        #: What the system's clock reached.
        self.mhz = mhz
        #: Of the clock that misses most: the share of its frequency that it reached.
        self.share = share


@dataclass(frozen=True)
class Placement:
    """Where the files of one build are: ``folder / (top + suffix)``."""

    folder: Path
    top: str
    #: Frequency of the system's clock.
    sys_clk_hz: int
    #: Settings of the router, one of :data:`~.toolchain.ROUTERS`.
    router: str = "quick"
    #: Peak memory of every tool that was run, in bytes.
    peaks: list = field(default_factory=list, compare=False)
    #: What the system's clock reached with every seed, in MHz; None if there was no end.
    reached: dict = field(default_factory=dict, compare=False)
    #: Tools that run now, and whether they are to end.
    tools: set = field(default_factory=set, compare=False)
    stopping: threading.Event = field(default_factory=threading.Event, compare=False)

    def path(self, suffix):
        return self.folder / f"{self.top}{suffix}"

    def command(self, tool):
        """The words of ``tool`` in LiteX's script, without options that say what to write."""
        script = self.path(".sh").with_name(f"build_{self.top}.sh").read_text()
        for line in script.splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == tool:
                return words
        raise TrebuchetError(f"LiteX's script in {self.folder} does not call {tool}")

    def mapping(self):
        """Yosys' script, ours in the place of LiteX's; copies the Verilog that it reads."""
        fast = clocks_faster_than(self.path(".lpf").read_text(), self.sys_clk_hz)
        read = with_local_sources(self.path(".ys").read_text(), self.folder)
        return map_for_area(read, self.top, self.sys_clk_hz, fast)

    def run(self, words, log, hopeless=None, names=None):
        """Run a tool; the lines in which it names an error go into the exception.

        With ``hopeless``, a function of the log's text so far, it is ended if that has a reason.
        The log of a tool that was given a canonical netlist is translated by its ``names``.
        """
        log = self.folder / log
        # On Ctrl-C and SIGTERM no tool goes on without us, nor what it has started.
        with (
            log.open("w") as out,
            start_group(words, cwd=self.folder, stdout=out, stderr=subprocess.STDOUT) as tool,
        ):
            self.tools.add(tool)
            try:
                if self.stopping.is_set():
                    _kill(tool)
                reason = None if hopeless is None else _watch(tool, log, hopeless)
                _, status, used = os.wait4(tool.pid, 0)
            finally:
                self.tools.discard(tool)
        if names is not None:
            log.write_text(names.translated(log.read_text(errors="replace")))
        tool.returncode = os.waitstatus_to_exitcode(status)
        self.peaks.append(used.ru_maxrss * 1024)
        if reason is not None:
            raise TrebuchetError(f"{words[0]} would not come to an end, see {log}: {reason}")
        if tool.returncode:
            lines = [text for text in log.read_text(errors="replace").splitlines() if text.strip()]
            errors = [text for text in lines if "ERROR" in text] or lines[-1:]
            if tool.returncode < 0:
                errors = [f"killed by {signal.Signals(-tool.returncode).name}"]
            raise TrebuchetError(f"{words[0]} failed, see {log}: {' | '.join(errors[-4:])}")

    def stop(self):
        """End the tools that other threads run, and those that they are about to."""
        self.stopping.set()
        for tool in tuple(self.tools):
            _kill(tool)


def _kill(tool):
    """Kill a tool and what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(tool.pid, signal.SIGKILL)


def _watch(tool, log, hopeless):
    """Until a tool ends by itself; else it is killed, and the reason returned."""
    while os.waitid(os.P_PID, tool.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(WATCH)
        reason = hopeless(log.read_text(errors="replace"))
        if reason is not None:
            _kill(tool)
            return reason
    return None


def check_room(board, used):
    """The netlist must fit the FPGA: nextpnr tries for ever to place one that does not."""
    fpga = ecp5_device(board.device)
    kinds = (
        ("LUTs", used["lut4"], fpga.lut4, LEAVE_OUT),
        ("flip-flops", used["ff"], fpga.lut4, LEAVE_OUT),
        ("block RAMs", used["bram"], fpga.bram, f"raise lut_ram, or {LEAVE_OUT}"),
        (
            "multipliers",
            used["dsp"],
            fpga.dsp,
            "lower a role's options or instances, or take another role",
        ),
    )
    for kind, needed, there, advice in kinds:
        if needed > there:
            raise TrebuchetError(f"board {board.name!r} needs {needed} {kind} of {there}; {advice}")


def place(placement, seeds):
    """Place and route with each seed, and keep the one with the fastest system clock: returned.

    If all that come to an end miss a clock, the best of them is told: :class:`ClocksMissed`.
    As many at once as there are cores, and :data:`ROOM` for each.
    """
    with ThreadPoolExecutor(seeds_at_once(len(seeds))) as pool:
        tries = [pool.submit(place_once, placement, seed) for seed in seeds]
        try:
            wait(tries)
        except BaseException:  # Ctrl-C, SIGTERM
            pool.shutdown(wait=False, cancel_futures=True)
            placement.stop()
            raise
    best, failure, missed = None, None, []
    for seed, attempt in zip(seeds, tries, strict=True):
        try:
            mhz = attempt.result()
        except ClocksMissed as error:
            missed.append(error)
            placement.reached[seed] = error.mhz
            continue
        except TrebuchetError as error:
            failure = error
            placement.reached[seed] = None
            continue
        placement.reached[seed] = mhz
        if mhz is None:
            raise TrebuchetError(
                f"none of the clocks that were placed is sys_clk_hz={placement.sys_clk_hz}; does "
                f"the PLL of attach make it? See {placement.path(f'_seed{seed}_pnr.json')}"
            )
        if best is None or mhz > best[0]:
            best = mhz, seed
    if best is None:
        raise max(missed, key=lambda error: error.share) if missed else failure
    for suffix, kept in ((".config", PLACED), ("_pnr.json",) * 2, ("_placed.json",) * 2):
        shutil.move(placement.path(f"_seed{best[1]}{suffix}"), placement.path(kept))
    for path in placement.folder.glob(f"{placement.top}_seed*"):
        path.unlink()
    _translate(placement.path("_placed.json"), names_of(placement))
    return best[1]


def _translate(path, names):
    """A file of nextpnr's, JSON, with the design's names."""
    path.write_text(names.translated(path.read_text(), in_json=True))


def seeds_at_once(count):
    """Of ``count`` seeds, how many are tried side by side on this machine."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(count, len(os.sched_getaffinity(0)), memory // ROOM))


def place_once(placement, seed):
    """Place and route the canonical netlist with one seed.

    Leaves what nextpnr wrote beside the netlist: ``_seedN.config``, ``_seedN_placed.json`` and the
    report ``_seedN_pnr.json``, of which the report has the design's names. Returns the frequency of
    the system's clock in MHz, None if there is none. Raises :class:`ClocksMissed`, which has the
    report; and :class:`TrebuchetError` if there was no end.
    """
    words = placement.command("nextpnr-ecp5")
    name = f"{placement.top}_seed{seed}"
    words[words.index("--textcfg") + 1] = f"{name}.config"
    words[words.index("--seed") + 1] = str(seed)
    report = placement.path(f"_seed{seed}_pnr.json")
    words += ["--report", report.name, "--write", f"{name}_placed.json", *PLACE_AND_ROUTE]
    report.unlink(missing_ok=True)
    names = names_of(placement)
    try:
        placement.run(words, f"nextpnr-ecp5_{seed}.log", no_end_in_sight, names)
    except TrebuchetError as error:
        if report.exists():  # it is written at the end, clocks missed or not
            _translate(report, names)
            _check_clocks(placement, seed, report, error)
        raise
    _translate(report, names)
    return _clocks(json.loads(report.read_text()), placement.sys_clk_hz)[1]


def _check_clocks(placement, seed, report, error):
    """Raise :class:`ClocksMissed` if a clock was missed, in the place of nextpnr's ``error``."""
    clocks, sys_mhz = _clocks(json.loads(report.read_text()), placement.sys_clk_hz)
    # nextpnr wants more than the frequency, not just it.
    missed = {name: clock for name, clock in clocks.items() if clock["mhz"] <= clock["target"]}
    if not missed:
        return
    said = ", ".join(
        f"{clock_name(name)} reached {clock['mhz']:.1f} MHz of {clock['target']:.1f}"
        for name, clock in missed.items()
    )
    of_system = any(_is_system(clock, placement.sys_clk_hz) for clock in missed.values())
    advice = "lower sys_clk_hz, try" if of_system else "try"
    raise ClocksMissed(
        f"clocks are missed, with seed {seed} the least: {said}; {advice} more seeds (--seeds N), "
        "or see the longest paths (--timing)",
        report,
        sys_mhz,
        min(clock["mhz"] / clock["target"] for clock in missed.values()),
    ) from error


def pack(placement, board):
    """Make the bitstream of ``.config``, as ``fill`` made it; returns the application's, or None.

    On a board whose FPGA starts with the flash's golden bitstream there are two: the golden one,
    which has the flash's slot for an application as the next to be loaded, and the application's,
    after which the golden one comes (BOOTADDR).
    """
    words = placement.command("ecppack")
    flash = board.flash
    if flash is None or "bitstream" not in flash.parts or flash.golden[0] or not flash.golden[1]:
        placement.run(words, "ecppack.log")
        return None
    at = words.index("--bootaddr") + 1
    words[at] = f"{flash.bitstream[0]:#x}"
    placement.run(words, "ecppack.log")
    application = placement.path("_application.bit")
    config = placement.path(".config")
    if board.multiboot == "pin":
        text = marked(config.read_text(), placement.path("_placed.json").read_text())
        config = placement.path("_application.config")
        config.write_text(text)
    words = ["ecppack", "--bootaddr", "0", config.name, "--bit", application.name]
    placement.run(words, "ecppack_application.log")
    return application


def _clocks(report, sys_clk_hz):
    """Every clock of a report of nextpnr, and the system's in MHz (None if it has none)."""
    clocks = {
        name: {"mhz": clock["achieved"], "target": clock["constraint"]}
        for name, clock in report["fmax"].items()
    }
    of_system = [clock["mhz"] for clock in clocks.values() if _is_system(clock, sys_clk_hz)]
    return clocks, min(of_system) if of_system else None


def _is_system(clock, sys_clk_hz):
    return abs(clock["target"] - sys_clk_hz / 1e6) < PLL_MARGIN * clock["target"]


def usage(placement, routed):
    """What a finished build uses: cells, and after routing the frequency of every clock in MHz.

    ``lut4`` counts LUTs used as logic, in carry chains and as RAM. Before placement that is an
    estimate from the netlist, after it nextpnr's own count.
    """
    if not routed:
        cells = json.loads(placement.path("_stat.json").read_text())["design"]
        count = cells["num_cells_by_type"].get
        return {
            "lut4": count("LUT4", 0) + 2 * count("CCU2C", 0) + 4 * count("TRELLIS_DPR16X4", 0),
            "ff": count("TRELLIS_FF", 0),
            "bram": count("DP16KD", 0),
            "dsp": count("MULT18X18D", 0),
            "sys_mhz": None,
            "clocks": {},
        }
    return usage_of(placement.path("_pnr.json"), placement.sys_clk_hz)


def usage_of(report, sys_clk_hz):
    """Cells and clocks as :func:`usage` returns them, by a report file of nextpnr."""
    report = json.loads(report.read_text())
    used = {name: cell["used"] for name, cell in report["utilization"].items()}
    clocks, sys_mhz = _clocks(report, sys_clk_hz)
    return {
        "lut4": used["TRELLIS_COMB"],
        "ff": used["TRELLIS_FF"],
        "bram": used["DP16KD"],
        "dsp": used["MULT18X18D"],
        "sys_mhz": sys_mhz,
        "clocks": clocks,
    }
