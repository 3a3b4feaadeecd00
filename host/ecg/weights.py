"""`trebuchet ecg weights`: give a board's network other weights while it runs.

They go as one SMP configuration message (distributed-fpga-framework, 3.2) without cores, the words
of :mod:`trebuchet.models.ecg.words` in the bitstream's place. It names the role ``ecg``, since one
that names none is for the board's firmware; without firmware there are no names, and the port's
role takes it. A board built without that answers
``BAD_TYPE``. The weights are gone when the board is reset or its bitstream loaded again.
"""

import json
import struct
from pathlib import Path
from typing import Annotated

import typer

from ...client import Board, ConnectionLost, Refused
from ...client.smp import PORT, Configuration
from ...models.ecg.model import Preset, Weights
from ...models.ecg.presets import preset_named
from ...models.ecg.words import ORDERS, weight_words
from ...models.errors import TrebuchetError
from ..options import Seconds

__all__ = ["app", "read_weights", "send_weights"]

app = typer.Typer(no_args_is_help=True, help="Give a board's network other weights.")


def read_weights(path: Path, preset: Preset) -> Weights:
    """Weights from a JSON file that `trebuchet ecg train` wrote; what is wrong is one line."""
    try:
        return preset.load_weights(path)
    except OSError as error:
        raise TrebuchetError(f"cannot read {path}: {error.strerror}; is the path right?") from error
    except RecursionError as error:
        raise TrebuchetError(f"{path} does not hold weights: it is nested too deep") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TrebuchetError(
            f"{path} does not hold weights; it must be a JSON file of `trebuchet ecg train`"
        ) from error
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise TrebuchetError(f"{path} does not hold weights: {error}") from error


def send_weights(
    address: str, port: int, weights: Weights, preset: Preset, timeout: float = 30.0
) -> int:
    """Send the weights, wait until they are in place; return how many words they are."""
    words = weight_words(weights, ORDERS[preset.name])
    bitstream = struct.pack(f"<{len(words)}H", *words)
    with Board(address, port=port, timeout=timeout) as board:
        try:
            role = _role_of(board)
            board.configure(Configuration(0, 0, (), bitstream), at_role=True, role=role)
        except Refused as refusal:
            said = str(refusal).replace("the configuration message", "the weights")
            raise TrebuchetError(said) from refusal
    return len(words)


def _role_of(board: Board) -> str | None:
    """Name of the role that the weights are for; None: the port's."""
    try:
        return "ecg" if "ecg" in board.fetch_roles() else None
    except ConnectionLost:
        return None


@app.command()
def load(
    board: Annotated[str, typer.Argument(help="Address of the board.")],
    file: Annotated[Path, typer.Argument(help="Weights, as `trebuchet ecg train` writes them.")],
    preset: Annotated[str, typer.Option(help="The board's: faithful or second.")] = "faithful",
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port of the role.")] = PORT,
    timeout: Seconds = 30,
) -> None:
    """Put the weights of a file into the network of a running board."""
    chosen = preset_named(preset)
    words = send_weights(board, port, read_weights(file, chosen), chosen, timeout)
    typer.echo(f"{words} words are in place; `trebuchet ecg run --weights {file}` compares")
