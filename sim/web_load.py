"""The web service under load: HTTP clients in the harness, which compare every byte.

::

    store = Store({b"/a": Object(bytes(1024), b"text/plain", 1)})
    run = run_web(build(web_load_source(config)), store, store.requests(), clients=64)
    run["load"]["cycles_per_request"]

The clients are the harness's own (``harness/tcp_client.h``), with keep-alive, pipelines, or a
connection for each request; what must come is what the golden model
(:mod:`trebuchet.models.http.server`) answers.
"""

import dataclasses
import json
import shlex
import struct
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..cores.services.pressure import Pressure
from ..cores.tcp.config import TcpConfig
from ..models.errors import TrebuchetError
from ..models.http.image import Image
from ..models.http.response import Object
from ..models.http.server import Connection
from ..models.paths import build_folder
from .build import Source
from .defaults import addresses
from .fabric import FabricOptions, emit
from .process import run_limited
from .web import DISCARD, IMAGE_FILE, LANES, PORT, WebTop, hex_of
from .web_misses import Keeper, Misses

__all__ = ["COLD", "COLD_PATH", "Store", "request", "run_web", "web_load_source"]

HARNESS = Path(__file__).resolve().parent / "web_harness"
#: Where the image begins, behind pool and sessions' state of 131,072 sessions.
BASE, SIZE, BUCKETS = 1 << 27, 1 << 26, 1024
#: The answer to misses lies behind it, and behind that what the drive reads is written.
ANSWER, ROOM = BASE + SIZE, BASE + SIZE + (1 << 25)
#: The file that is never in memory, and its path.
COLD_PATH = b"/cold.bin"
COLD = Object(bytes(k * k >> 3 & 255 for k in range(1 << 14)), b"application/octet-stream", 7)
#: Fields behind Host, as curl sends them.
_FIELDS = b"User-Agent: curl/8.5.0\r\nAccept: */*\r\n"


def request(path: bytes, close: bool = False, fields: bytes = _FIELDS) -> bytes:
    """Return a request for ``path``, as curl makes it, perhaps with ``Connection: close``."""
    ending = b"Connection: close\r\n\r\n" if close else b"\r\n"
    return b"GET " + path + b" HTTP/1.1\r\nHost: 192.0.2.2\r\n" + fields + ending


@dataclasses.dataclass(frozen=True)
class Store:
    """Objects by path, and what a server that has them answers."""

    objects: Mapping[bytes, Object]

    def exchange(self, asked: bytes) -> tuple[bytes, bytes]:
        """Return a request and the answer to it, byte for byte."""
        return asked, Connection(self.objects).receive(asked)

    def exchanges(self, close: bool = False) -> list[tuple[bytes, bytes]]:
        """Return a request for each object and its answer."""
        return [self.exchange(request(path, close)) for path in self.objects]

    @property
    def image(self) -> Image:
        """What the memory holds; :data:`COLD` is known, and not in memory."""
        objects = {**self.objects, COLD_PATH: Object(b"", b"text/plain", 0)}
        return Image(objects, BASE, SIZE, buckets=BUCKETS, cold={COLD_PATH})

    def memory(self) -> str:
        """The image, and the answer to misses, as ``$readmemh`` reads them."""
        return hex_of(self.image, 8) + hex_of(_Answer(ANSWER, COLD.found(False).sent()), 8)


class _Answer(NamedTuple):
    base: int
    bytes: bytes


class _LoadedTop(WebTop):
    """With places it also sweeps when they run out, every 2 ** ``pressure_log2`` cycles."""

    pressure_log2 = 16

    def elaborate(self, platform):
        m = super().elaborate(platform)
        if self.config.places:
            m.submodules.pressure = pressure = Pressure(self.config.places, self.pressure_log2)
            number = self.config.ports.index(PORT)
            m.d.comb += pressure.free.eq(getattr(self._engine.csr, f"places_free_{number}"))
            # The last assignment counts.
            m.d.comb += self._web.sweep.eq(m.submodules.clock.sweep | pressure.sweep)
        return m


def web_load_source(
    config: TcpConfig,
    lanes: int = LANES,
    csr: Mapping[str, Any] | None = None,
    pressure_log2: int = 16,
    misses: Mapping[str, int] | None = None,
) -> Source:
    """The :class:`~trebuchet.sim.build.Source` of a simulator for an engine of ``config``.

    ``csr``: registers, as for :class:`~trebuchet.sim.fabric.FabricOptions`. ``pressure_log2``: with
    places, of :class:`~trebuchet.cores.services.pressure.Pressure`. ``misses``: times of
    :class:`~trebuchet.sim.web_misses.Misses`: requests for :data:`COLD_PATH` are answered with
    :data:`COLD`, each after a load. None: they are answered with 503.
    """
    state = config.pool_size if config.cache else 0
    config = dataclasses.replace(config, ports=(DISCARD, PORT), state_base=state)
    if config.pool_size + config.state_size > BASE:
        raise ValueError(f"Pool and sessions' state must be at most {BASE} bytes")
    image = (BASE, Image({}, BASE, buckets=BUCKETS).index, BUCKETS)
    keeper = None
    if misses is not None:
        sectors = len(COLD.content) // 512
        rule = Misses(ANSWER, len(COLD.found(False).sent()), ROOM, sectors, **misses)
        keeper = Keeper(config.width, config.rows, rule)
    top = _LoadedTop(config, *addresses(), image, lanes, keeper)  # type: ignore[call-arg]
    top.pressure_log2 = pressure_log2
    options = FabricOptions(memory_bytes=2 * BASE, memory_file=IMAGE_FILE, csr=dict(csr or {}))
    return dataclasses.replace(emit(top, options), kind="web", main=HARNESS / "web.cpp")


def _write_exchanges(path: Path, exchanges: Iterable[tuple[bytes, bytes]]) -> None:
    pairs = (struct.pack("<2I", len(a), len(b)) + a + b for a, b in exchanges)
    path.write_bytes(b"".join(pairs))


def run_web(
    binary: Path,
    store: Store,
    exchanges: Iterable[tuple[bytes, bytes]],
    *,
    each: bool = False,
    missing: int = 0,
    timeout: float = 7200,
    **options: Any,
) -> dict[str, Any]:
    """Run clients that ask for what ``exchanges`` say, at random; return the statistics.

    Parameters
    ----------
    each : bool
        A connection for each request; the answers must close it.
    missing : int
        Clients more, which ask for :data:`COLD_PATH` all the time, on connections that stay open.
    timeout : float
        Seconds of processor time.
    options
        Of the harness: ``clients``, ``transactions``, ``pipeline``, ``idle`` and so on.

    Raises
    ------
    TrebuchetError
        A wrong byte, a connection that ended too early, a fault of the link, or the limit came.
    """
    builds = build_folder("sim")
    builds.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="load-", dir=builds) as name:
        folder = Path(name)
        (folder / IMAGE_FILE).write_text(store.memory())
        _write_exchanges(folder / "exchanges", exchanges)
        cold = COLD.found(False).sent()
        _write_exchanges(folder / "misses", [(request(COLD_PATH), cold)])
        command = [str(binary), "--messages", "exchanges", "--port", str(PORT)]
        command += ["--each"] if each else []
        command += ["--misses", "misses", "--missing", str(missing)]
        for key, value in options.items():
            command += [f"--{key.replace('_', '-')}", str(value)]
        done = run_limited(command, timeout, folder)
    if done.returncode or not done.stdout:
        said = (done.stderr.strip() or done.stdout.strip())[-1200:]
        raise TrebuchetError(f"the web load failed: {said} (ran: {shlex.join(command)})")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
