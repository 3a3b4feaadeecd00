"""Find a TCP segment that a board sent twice, with its trace core: docs/tutorials/probe.md.

`python examples/find_retransmission.py ADDRESS`, of a board with these probes (--probe):
tcp.csr.retransmits, and of tcp.tx_segment valid, ready, and of its payload local_port,
remote_port, seq and length.
"""

import random
import socket
import sys

from trebuchet.client import Board
from trebuchet.models.errors import TrebuchetError

ECHO_PORT, STREAM = 7, "tcp.tx_segment"
PIECE, PIECES = 8000, 2000
#: Captures: each that shows an answer to this program, sent again, is followed by another.
CAPTURES = 8


def echo(connection, data):
    """Have the board send data: its echo service returns what it gets."""
    connection.sendall(data)
    returned = b""
    while len(returned) < len(data):
        returned += connection.recv(65536)
    assert returned == data


def capture(board, address):
    """What the board sent around the moment in which it counted a retransmission."""
    depth = board.probe_layout().depth
    board.arm_probes(["tcp.csr.retransmits:change"], before=3 * depth // 4)
    with socket.create_connection((address, ECHO_PORT)) as connection:
        for _ in range(PIECES):
            echo(connection, random.randbytes(PIECE))
            if board.probe_state().done:
                return board.read_probes()
    sys.exit(f"the board sent nothing twice in {PIECE * PIECES} bytes; is no frame lost?")


def sent_twice(transfers):
    """Cycle and segment of the first transmission by the echo service, and those of the second."""
    before = []
    for cycle, segment in transfers:
        for earlier in before:
            same = all(earlier[1][name] == segment[name] for name in ("local_port", "remote_port"))
            ahead = (segment["seq"] - earlier[1]["seq"]) % (1 << 32)
            ours = same and segment["local_port"] == ECHO_PORT and segment["length"]
            if ours and ahead < earlier[1]["length"]:
                return earlier, (cycle, segment)
        before.append((cycle, segment))
    return ()


def main(address):
    with Board(address, timeout=60) as board:
        for _ in range(CAPTURES):
            found = capture(board, address)
            if pair := sent_twice(found.transfers(STREAM)):
                break
        else:
            sys.exit("first transmissions are older than captures; choose a larger --probe-depth")
    for cycle, segment in pair:
        values = ", ".join(f"{name} {value}" for name, value in segment.items())
        print(f"cycle {cycle - found.trigger:+d}: {values}")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except TrebuchetError as error:
        sys.exit(str(error))
    except IndexError:
        sys.exit("name the board's address: python examples/find_retransmission.py 192.0.2.2")
