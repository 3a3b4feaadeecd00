"""What manage.robot has the host do, in the Python that Trebuchet is installed in.

``manage.py PORT configure BASE``, ``work TEXT`` or ``vanish``; prints what the board answered.
"""

import socket
import sys

from trebuchet.client import Board
from trebuchet.client.smp import Configuration, Core
from trebuchet.host.manage import TIMEOUT
from trebuchet.host.options import open_board
from trebuchet.models.errors import TrebuchetError


def _act(board: Board, action: str, *words: str) -> None:
    if action == "configure":
        board.configure(Configuration(8, 16, (Core(int(words[0], 0), 0, 0),), b""))
    elif action == "work":
        print(board.work(words[0].encode()).decode())
    elif action == "vanish":
        whole = Configuration(0, 0, (), bytes(100)).message().pack()
        with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
            connection.sendall(whole[:50])
    else:
        raise SystemExit(f"there is no action {action!r}")


if __name__ == "__main__":
    try:
        with open_board(f"127.0.0.1:{sys.argv[1]}", TIMEOUT) as board:
            _act(board, *sys.argv[2:])
    except TrebuchetError as error:
        raise SystemExit(str(error)) from None
