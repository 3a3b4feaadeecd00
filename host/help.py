"""How help screens look: paragraphs in one piece, and no type beside a switch."""

from typing import Any

import typer

__all__ = ["HELP_OPTIONS", "tidied"]

#: How help is asked for, of every command.
HELP_OPTIONS = ["--help", "-h"]


def tidied(command: Any) -> Any:
    """The Typer command (or group) ``command`` with its help texts ready for the screen.

    Typer breaks the lines of all but the first paragraph where the source does, and again at the
    terminal's width; and it says ``<bool>`` beside an option that takes no value. A paragraph that
    begins with a backspace, or is indented, stays as it is.
    """
    if command.help:
        paragraphs = command.help.expandtabs().split("\n\n")
        command.help = "\n\n".join(map(_in_one_piece, paragraphs))
    context = typer.Context(command, help_option_names=HELP_OPTIONS)
    for parameter in (*command.params, command.get_help_option(context)):
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        tidied(inner)
    return command


def _in_one_piece(paragraph: str) -> str:
    lines = paragraph.splitlines()
    if paragraph.startswith("\b") or any(line.startswith(" ") for line in lines):
        return paragraph
    return " ".join(lines)
