"""`trebuchet cpu`: the processor's Verilog from its SpinalHDL sources."""

from typing import Annotated

import typer
from rich.console import Console

from ..models.errors import TrebuchetError

__all__ = ["cpu"]


def cpu(
    icache_bytes: Annotated[
        int | None,
        typer.Option(
            help="Instruction cache of the core that has one: a power of two from 1024 to 65536; "
            "as before if left out."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail if the Verilog is not current.")
    ] = False,
) -> None:
    """Generate the Verilog of the processor from its SpinalHDL sources, into soc/cpu/verilog.

    It needs Java and mvn. What is not on this machine yet is downloaded: the Scala compiler and
    SpinalHDL (52 MB) from Maven Central, to mvn's own store and build/cpu. The first run compiles
    VexRiscv, some minutes; the next ones take one.
    """
    from .cpu import generate

    if check and icache_bytes is not None:
        raise TrebuchetError("--check takes no --icache-bytes: it is about what is in the tree")
    with Console(stderr=True).status("generating the processor (logs are in build/cpu)"):
        if check:
            generate.check()
            written = []
        else:
            size = generate.recorded()["icache_bytes"] if icache_bytes is None else icache_bytes
            written = generate.write(size)
    for path in written:
        typer.echo(str(path))
    if check:
        typer.echo("soc/cpu/verilog is current")
