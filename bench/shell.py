"""Cycles per HTTP transaction of the complete shell, 64 bits wide, beside 100,000 connections.

What the engine alone takes is measured by :mod:`.tcp`, with services that hardly cost anything.
Here everything of a board without its CPU is there (the fabric top): preset ``full`` of a board
with its places, all services of the plan, the ECG role, and one memory arbiter for all of them.
Memory, link, clients, and the 100,000 others are those of :mod:`.tcp`.

100,000 connections to the discard service are opened first. Then 64 clients at once connect to the
fixed page, ask, get 1 KB and close; 1,000 such transactions are measured. At the end the others
close in random order, each with a few bytes first, and what is then not free again has leaked:
sessions, receive segments, descriptors, places.
"""

from ..boards.presets import TcpChoice
from ..cores.tcp.config import TcpConfig
from ..sim.build import Source, build
from ..sim.fabric import fabric_source
from ..soc.build import shell_config
from ..soc.plans import sim_board
from .job import Job, Values
from .tcp import IDLE, TIME_WAIT, http_load, left_over

__all__ = ["beside_many", "tcp_config"]


def tcp_config() -> TcpConfig:
    """Return the TCP engine of a board with preset ``full`` and a data path of 64 bits."""
    board = sim_board(tcp=TcpChoice("full")).variant(data_width=64)
    return shell_config(board, check=False).tcp


def beside_many() -> Job:
    """Return the measurement of a transaction's cycles beside 100,000 open connections."""
    config = tcp_config()
    top = fabric_source(config, csr={"csr_tcp": {"time_wait": TIME_WAIT}})
    return Job((top,), lambda: _measure(top, config))


def _measure(top: Source, config: TcpConfig) -> Values:
    load, counters = http_load(build(top), IDLE)
    return {
        "shell.http_1k_100k_cycles": round(load["cycles_per_transaction"], 1),
        "shell.churn_100k_leaks": left_over(config, counters),
    }
