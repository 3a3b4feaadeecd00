"""What manage.robot has the host do, in the Python that Trebuchet is installed in.

``manage.py PORT configure BASE``, ``work TEXT`` or ``vanish``; prints what the board answered.
"""

import sys

from trebuchet.host.manage import Manager
from trebuchet.host.smp import Configuration, Core
from trebuchet.models.errors import TrebuchetError


def _act(manager: Manager, action: str, *words: str) -> None:
    if action == "configure":
        manager.configure(Configuration(8, 16, (Core(int(words[0], 0), 0, 0),), b""))
    elif action == "work":
        print(manager.work(7, words[0].encode()).decode())
    elif action == "vanish":
        whole = Configuration(0, 0, (), bytes(100)).message().pack()
        manager.connection.socket.sendall(whole[:50])
    else:
        raise SystemExit(f"there is no action {action!r}")


if __name__ == "__main__":
    try:
        with Manager(f"127.0.0.1:{sys.argv[1]}") as manager:
            _act(manager, *sys.argv[2:])
    except TrebuchetError as error:
        raise SystemExit(str(error)) from None
