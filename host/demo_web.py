"""`trebuchet demo web`: a simulated board serves the documentation to the user's browser.

The board is that of `trebuchet sim --web`: TCP engine and web service in gateware, without a
processor. It is on a network of its own; a port of this machine leads there.
"""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

from ..models.errors import TrebuchetError
from ..models.paths import IN_CHECKOUT, TREE
from ..models.steps import Step
from .demo import simulator
from .forward import Forwarder

__all__ = ["demonstrate", "documentation", "serving"]

#: Where `make docs` leaves the site.
SITE = TREE / "build" / "site"
#: The board's port.
HTTP = 80


def documentation() -> Path:
    """The folder of the documentation site, which is built unless it is there."""
    if not IN_CHECKOUT:
        raise TrebuchetError(
            "the documentation is built from the source tree, which an installed package lacks; "
            "name another folder of pages with --folder"
        )
    if not (SITE / "index.html").is_file():
        with Step("building the documentation", 90):
            command = [sys.executable, "-m", "trebuchet.docs.site.build"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no reason given"]
            raise TrebuchetError(
                f"the documentation was not built: {lines[-1]}; it needs all packages (make venv), "
                "or name another folder of pages with --folder"
            )
    return SITE


@contextmanager
def serving(folder: Path, port: int, console: Console) -> Iterator[tuple[str, Any]]:
    """Serve a folder; yields the address for a browser, and the board."""
    begin = time.monotonic()
    web = simulator("web")
    with web.web_folder(folder) as (where, image):
        for path in sorted(image.left_out):
            console.print(f"left out, as its path has more than 96 bytes: {path.decode()}")
        with Step("generating and compiling the simulated board", 60):
            source = web.web_source()
            binary = simulator("build").build(source)
        with simulator("run").Board(binary, cwd=where) as board:
            with Step("starting the board", 5):
                board.wait_port(HTTP)
            with Forwarder(lambda: board.connect(HTTP, timeout=None), port) as forwarder:
                console.print(f"the simulated board is up after {time.monotonic() - begin:.1f} s")
                yield f"http://127.0.0.1:{forwarder.port}/", board


def _no_board() -> NoReturn:
    raise OSError("there is no board yet")


def demonstrate(folder: Path | None, port: int, console: Console) -> None:
    """Serve the folder, or the documentation, until Ctrl-C: `trebuchet demo web`."""
    if folder is not None:
        simulator("options").check_web(folder, "--folder")
    if port:
        Forwarder(_no_board, port).close()
    # A polite kill takes the clean way out, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with serving(folder or documentation(), port, console) as (address, board):
        console.print(f"open {address} in a browser; Ctrl-C ends it", soft_wrap=True)
        with contextlib.suppress(KeyboardInterrupt):
            while board.wait(1):
                pass
        board.check()
        served = board.counters()
        console.print(
            f"{served['web.requests']} requests answered in gateware, "
            f"{served['web.not_found']} of them with 404"
        )
