"""The command-line interface as pages: of each command usage, help, arguments and options."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import typer

from ...host.cli import COMMANDS, LazyCommand
from .pages import ORPHAN

__all__ = ["command", "commands", "pages"]

HEAD = """# Commands

`trebuchet COMMAND --help` shows the same. Exit codes: 0 done, 1 an error that the message explains,
2 wrong usage, 70 a fault of the program, 130 interrupted.

| command | what |
|---|---|"""
PLACEHOLDERS = {int: "N", float: "X", str: "TEXT", Path: "PATH"}


def command(name: str) -> Any:
    """Return the Typer command ``trebuchet NAME``."""
    return LazyCommand(name, COMMANDS[name]).resolve()


def commands(name: str, found: Any = None) -> Iterator[tuple[str, Any]]:
    """Yield ``trebuchet NAME`` and its subcommands, each with its full name."""
    found = command(name) if found is None else found
    yield name, found
    for inner, each in getattr(found, "commands", {}).items():
        yield from commands(f"{name} {inner}", each)


def _escaped(text: str) -> str:
    """Return a help text as Markdown in a table's cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")


def _metavar(parameter: Any) -> str:
    """Return the placeholder of a parameter's value, empty for a switch."""
    if parameter.metavar is not None or getattr(parameter, "is_flag", False):
        return str(parameter.metavar or "")
    kind = parameter.type_descriptor.annotation
    inner = (*get_args(kind), kind)[0]
    return PLACEHOLDERS.get(inner, "VALUE")


def _parameters(found: Any) -> Iterator[str]:
    rows = []
    for parameter in found.params:
        if getattr(parameter, "hidden", False):
            continue
        value = _metavar(parameter)
        is_option = parameter.param_type_name == "option"
        names = ", ".join((*parameter.opts, *parameter.secondary_opts)) if is_option else value
        shown = f"`{names} {value}`" if is_option and value else f"`{names}`"
        said = [_escaped(parameter.help or "")]
        if parameter.required:
            said.append("Required.")
        elif isinstance(parameter.default, str | int | float) and value and parameter.default != "":
            said.append(f"Default: `{parameter.default}`.")
        rows.append(f"| {shown} | {' '.join(filter(None, said))} |")
    if rows:
        yield from ("| argument or option | meaning |", "|---|---|", *rows, "")


def _page(name: str) -> Iterator[str]:
    yield from (ORPHAN, f"# trebuchet {name}", "")
    for full, found in commands(name):
        if full != name:
            yield from (f"## trebuchet {full}", "")
        context = typer.Context(found, info_name=f"trebuchet {full}")
        usage = " ".join(found.collect_usage_pieces(context))
        yield from ("```text", f"trebuchet {full} {usage}".rstrip(), "```", "")
        for paragraph in (found.help or "").split("\n\n"):
            text = paragraph.strip()
            if text.startswith("\b") or text.startswith(" "):
                yield from ("```text", text.strip("\b\n"), "```", "")
            elif text:
                yield from (text.replace("<", "\\<"), "")
        yield from _parameters(found)


def pages() -> dict[str, str]:
    """Return the pages of the commands by name, and their index."""
    found = {f"reference/cli/{name}.md": "\n".join(_page(name)) for name in COMMANDS}
    rows = (f"| [`trebuchet {n}`]({n}.md) | {_escaped(e.help)} |" for n, e in COMMANDS.items())
    return found | {"reference/cli/index.md": "\n".join([HEAD, *rows, ""])}
