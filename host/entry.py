"""The script ``trebuchet``: imports little, so that an early Ctrl-C leaves no stack trace."""

import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run :func:`.cli.main`, whose imports take a quarter of a second."""
    try:
        from .cli import main as run_command
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    run_command()
