"""A world around :class:`TcpEngine` for tests: sender, network, peers, services, memory.

Everything that touches the engine runs in one background test bench, :meth:`World.__call__`; a
test's script talks to Python queues only. Random back-pressure is on every stream when ``rng`` is
given.
"""

import functools
from collections import deque

from memory_bench import Driven, raw
from streams import MemoryResponder, Simulation, make_rng
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.engine import TcpEngine
from trebuchet.cores.tcp.service import EventKind

M32 = (1 << 32) - 1
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

#: Small and quick: 8 sessions, 4 KiB segments, time-outs of a few ticks.
SMALL = TcpConfig(
    sessions=8,
    ports=(7, 9, 80),
    segment_log2=12,
    wheel=8,
    rto_min=12,
    rto_initial=16,
    rto_max=200,
    syn_retries=3,
    retries=6,
    keepalive_idle=400,
    keepalive_interval=30,
    keepalive_retries=3,
    time_wait=40,
    user_timeout=3000,
)
SERVER_IP_PEER = 0x0A000001


class _Source:
    """Puts queued payloads (as ints) onto a stream."""

    def __init__(self, stream, rng, idle):
        self.stream, self.rng, self.idle = stream, rng, idle
        self.raw = raw(stream.payload)
        self.queue = deque()
        self.offered = False

    def drive(self, ctx):
        if not self.offered and self.queue:
            if self.rng is not None and self.rng.random() < self.idle:
                return
            ctx.set(self.raw, self.queue[0])
            ctx.set(self.stream.valid, 1)
            self.offered = True

    def fired(self, ctx, ready):
        if self.offered and ready:
            self.queue.popleft()
            ctx.set(self.stream.valid, 0)
            self.offered = False


class _Engine:
    """An engine and its simulation, which a later world of the same configuration uses again."""

    def __init__(self, key):
        make, config = key
        self.dut = make(config)

    @functools.cached_property
    def simulation(self):
        return Simulation(self.dut)


#: Engines that no world has, by class and configuration; the ones used last.
_ENGINES = {}
_MOST = 3


class World:
    """``dut`` with a responder on ``mem``, a reader instead of the sender, service models."""

    background = True

    def __init__(self, config=SMALL, seed=None, tick=20, services=None, stall=0.2, wire=None):
        self.config, self.seed, self.tick, self.stall = config, seed, tick, stall
        self.rng = None if seed is None else make_rng(seed, "world")
        self._key = TcpEngine, config  # tests of mutants have another class
        self._engine = _ENGINES.pop(self._key, None) or _Engine(self._key)
        self.dut = self._engine.dut
        self.memory = bytearray(config.pool_base + config.pool_size + (1 << 16))
        self.heap = config.pool_base + config.pool_size  # transmit memory
        self.responder = MemoryResponder(
            self.dut.mem, self.memory, rng=None if seed is None else make_rng(seed, "mem")
        )
        self.responders = [self.responder]
        if config.cache:  # state of sessions, in a memory full of rubbish
            rng = make_rng(seed, "state")
            state = bytearray(rng.randbytes(config.state_base + config.state_size))
            self.responders.append(MemoryResponder(self.dut.state, state, rng=rng, outstanding=16))
        self.now = 0  # ticks
        self.cycle = 0
        self.out = []  # segments sent by the engine
        self.wire = wire if wire is not None else self.out.append
        self.services = services or [Service() for _ in config.ports]
        self.reading = deque()  # segments whose memory is still to be read
        self.timers = []  # called each tick
        rng, dut = self.rng, self.dut
        self.segments = _Source(dut.segment, rng, stall)
        self.payloads = _Source(dut.payload, rng, stall)
        self.sent = _Source(dut.sent, rng, stall)
        self.sources = [self.segments, self.payloads, self.sent]
        if config.icmp:
            self.notices = _Source(dut.notice, rng, stall)
            self.sources.append(self.notices)
        self.ports = []
        for k, service in enumerate(self.services):
            port = dut.services[k]
            service.attach(self, _Source(port.tx, rng, stall), _Source(port.free, rng, stall))
            self.ports.append(port)

    # -- what tests call -----------------------------------------------------------------------

    def send(
        self, seq, ack=0, flags=ACK, data=b"", window=65535, mss=0, rport=4000, port=7, ip=None,
        scale=None, permits=False, vlan=0,
    ):  # fmt: skip
        """A segment arrives."""
        fields = {
            "mac": (0x060504030201, 48),
            "ip": (SERVER_IP_PEER if ip is None else ip, 32),
            "remote_port": (rport, 16),
            "local_port": (port, 16),
            "seq": (seq & M32, 32),
            "ack": (ack & M32, 32),
            "flags": (flags, 8),
            "window": (window, 16),
            "mss": (mss, 16),
            "length": (len(data), 16),
        }
        if self.config.scaling:
            fields |= {"scaled": (scale is not None, 1), "scale": (scale or 0, 4)}
        if self.config.sack:
            fields |= {"permits": (permits, 1)}
        if self.config.vlan:
            fields |= {"vlan": (vlan, 17)}
        self.segments.queue.append(_pack(fields))
        n = self.config.width // 8
        for at in range(0, len(data), n):
            chunk = data[at : at + n]
            last = at + n >= len(data)
            self.payloads.queue.append(
                _pack(
                    {
                        "data": (int.from_bytes(chunk, "little"), 8 * n),
                        "empty": (n - len(chunk), (n - 1).bit_length()),
                        "first": (at == 0, 1),
                        "last": (last, 1),
                        "error": (0, 1),
                    }
                )
            )

    def notice(self, seq, code, mtu=0, rport=4000, port=7, ip=SERVER_IP_PEER):
        """An ICMP error arrives: of a segment that began with ``seq``."""
        fields = {"ip": (ip, 32), "remote_port": (rport, 16), "local_port": (port, 16)}
        fields |= {"seq": (seq & M32, 32), "code": (code, 8), "mtu": (mtu, 16)}
        self.notices.queue.append(_pack(fields))

    def csr(self, ctx, name):
        return ctx.get(getattr(self.dut.csr, name))

    def read(self, addr, length):
        return bytes(self.memory[addr : addr + length])

    async def until(self, ctx, condition, ticks=400):
        """Wait until ``condition()``; at most so many ticks."""
        end = self.now + ticks
        while not condition():
            assert self.now < end, f"nothing for {ticks} ticks; last segments: {self.out[-3:]}"
            await ctx.tick()

    async def pause(self, ctx, ticks):
        end = self.now + ticks
        while self.now < end:
            await ctx.tick()

    async def get(self, ctx, ticks=400):
        """The next segment the engine sends."""
        await self.until(ctx, lambda: self.out, ticks)
        return self.out.pop(0)

    async def quiet(self, ctx, ticks):
        """Nothing is sent for so many ticks."""
        await self.pause(ctx, ticks)
        assert self.out == [], f"{self.out}"

    async def drained(self, ctx, ticks=600):
        """Everything comes back: sessions, segments, descriptors."""
        end = self.now + ticks
        while not (
            self.csr(ctx, "idle")
            and self.csr(ctx, "segments_free") == self.config.pool_segments
            and self.csr(ctx, "descriptors_free") == 4 * self.config.sessions
            and self.csr(ctx, "half_open") == 0
        ):
            left = {
                n: self.csr(ctx, n)
                for n in ("idle", "sessions_used", "segments_free", "descriptors_free", "half_open")
            }
            assert self.now < end, f"not drained: {left}"
            await ctx.tick()
        assert not self.payloads.queue, "payload left over: a verdict was missed"

    def run(self, *scripts, limit=60_000, vcd=None):
        def bound(script):
            async def call(ctx):
                await script(ctx, self)

            return call

        benches = [bound(script) for script in scripts]
        benches += [self, *self.responders]
        cycles = self._engine.simulation.run(*benches, limit=limit, seed=self.seed, vcd=vcd)
        _ENGINES[self._key] = self._engine
        while len(_ENGINES) > _MOST:
            del _ENGINES[next(iter(_ENGINES))]
        return cycles

    # -- the background process ------------------------------------------------------------------

    async def __call__(self, ctx):
        sources = list(self.sources)
        for service in self.services:
            sources += [service.tx, service.free]
        tx = self.dut.tx_segment
        samples = [tx.valid, raw(tx.payload)]
        for port in self.ports:
            samples += [port.event.valid, raw(port.event.payload)]
        samples += [source.stream.ready for source in sources]
        readies = [Driven(stream.ready) for stream in (tx, *(port.event for port in self.ports))]
        tick, stalled = Driven(self.dut.tick), [False] * len(readies)
        self._drive(ctx, sources, tick, readies, stalled)
        async for _, _, *values in ctx.tick().sample(*samples):
            if values[0] and not stalled[0]:
                self._take(_unpack(tx.payload.shape(), values[1]))
            for k, service in enumerate(self.services):
                if values[2 + 2 * k] and not stalled[k + 1]:
                    event = _unpack(self.ports[k].event.payload.shape(), values[3 + 2 * k])
                    service.event(event)
            for source, ready in zip(sources, values[2 + 2 * len(self.ports) :], strict=True):
                source.fired(ctx, ready)
            self._drive(ctx, sources, tick, readies, stalled)

    def _drive(self, ctx, sources, tick, readies, stalled):
        """Everything that the engine is offered in a cycle; ``stalled`` says what it is not."""
        self.cycle += 1
        ticks = self.cycle % self.tick == 0
        tick.set(ctx, ticks)
        if ticks:
            self.now += 1
            for timer in list(self.timers):
                timer(self.now)
        self._read(ctx)
        for source in sources:
            source.drive(ctx)
        rng = self.rng
        for k in range(len(stalled)):
            stalled[k] = rng is not None and rng.random() < self.stall
        stalled[0] |= len(self.reading) > 4
        for k, service in enumerate(self.services):
            stalled[k + 1] |= service.asleep
        for ready, stall in zip(readies, stalled, strict=True):
            ready.set(ctx, not stall)

    def _take(self, segment):
        segment["flags"] = sum(segment["flags"][name] << k for k, name in enumerate(_FLAGS))
        delay = 0 if self.rng is None else self.rng.randint(0, 30)
        self.reading.append((self.cycle + delay, segment))

    def _read(self, ctx):
        """The sender's memory access happens some time after it has taken the segment."""
        while self.reading and self.reading[0][0] <= self.cycle:
            _, segment = self.reading.popleft()
            segment["data"] = self.read(segment["addr"], segment["length"])
            self.sent.queue.append(segment["session"])
            self.wire(segment)


_FLAGS = ("fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr")


def _pack(fields):
    value, at = 0, 0
    for number, width in fields.values():
        value |= (int(number) & ((1 << width) - 1)) << at
        at += width
    return value


def _unpack(layout, raw):
    result = {}
    for name, field in layout:
        bits = raw >> field.offset & ((1 << field.width) - 1)
        inner = getattr(field.shape, "members", None)
        result[name] = _unpack(field.shape, bits) if inner is not None else bits
    return result


class Service:
    """A service that keeps what it is told and answers only when asked to; checks the contract.

    ``echo``: sends back what it gets, frees it, closes after EOF, releases after CLOSED.
    """

    def __init__(self, echo=False, release=True, free=True):
        self.echo, self.auto_release, self.auto_free = echo, release, free
        self.asleep = False  # takes no events
        self.state = {}  # session -> dict
        self.log = []
        self.finished = []  # state of sessions that are released

    def attach(self, world, tx, free):
        self.world, self.tx, self.free = world, tx, free

    def event(self, event):
        kind, session = EventKind(event["kind"]), event["session"]
        self.log.append((kind.name, session, event["ok"], event["tag"], event["position"]))
        if kind == EventKind.OPEN:
            assert session not in self.state, "OPEN of a session that is not released"
            self.state[session] = {
                "data": b"", "read": 0, "eof": False, "closed": None, "tags": deque(),
                "backlog": deque(), "tag": 0, "close": False, "freed": 0, "base": None,
            }  # fmt: skip
            return
        s = self.state[session]
        assert s["closed"] is None or kind == EventKind.SENT, "event after CLOSED"
        getattr(self, "_" + kind.name.lower())(session, s, event)
        if self.echo:
            self._pump(session, s)

    def _data(self, session, s, event):
        assert not s["eof"], "DATA after EOF"
        size = self.world.config.segment_size
        assert event["base"] % size == self.world.config.pool_base % size
        s["base"] = event["base"]
        count = (event["position"] - s["read"]) & M32
        assert 0 < count <= size
        data = bytes(
            self.world.memory[event["base"] + (s["read"] + k) % size] for k in range(count)
        )
        s["data"] += data
        s["read"] = event["position"]
        if self.echo:
            s["backlog"].append(data)
        if self.auto_free:
            self.consume(session)

    def _eof(self, session, s, event):
        assert event["position"] == s["read"], "EOF before all DATA"
        s["eof"] = True

    def _sent(self, session, s, event):
        tag, addr, length, data = s["tags"].popleft()
        assert tag == event["tag"], "SENT out of order"
        # Only now may the memory change; noise would show a late read.
        self.world.memory[addr : addr + length] = bytes(b ^ 0x5A for b in data)

    def _closed(self, session, s, event):
        assert not s["tags"], "CLOSED before every descriptor was answered"
        s["closed"] = event["ok"]
        if self.auto_release:
            self.release(session)

    def _pump(self, session, s):
        if s["closed"] is not None:
            return
        while s["backlog"] and len(s["tags"]) < 4:
            self.send(session, s["backlog"].popleft())
        if s["eof"] and not s["backlog"] and not s["close"] and len(s["tags"]) < 4:
            self.send(session, b"", close=True)

    # -- what a service does ---------------------------------------------------------------------

    def send(self, session, data, close=False, abort=False, push=True):
        s = self.state[session]
        world = self.world
        room = len(world.memory) - world.config.pool_base - world.config.pool_size
        start = world.config.pool_base + world.config.pool_size
        if world.heap + len(data) > len(world.memory):
            world.heap = start
        assert len(data) < room // 8
        addr = world.heap
        world.heap += len(data)
        world.memory[addr : addr + len(data)] = data
        s["tag"] = (s["tag"] + 1) & 0xFF
        s["close"] |= close
        s["tags"].append((s["tag"], addr, len(data), data))
        self.post(session, addr, len(data), push, close, abort, s["tag"])

    def post(self, session, addr, length, push=True, close=False, abort=False, tag=0):
        fields = {
            "session": (session, 17), "addr": (addr, 32), "length": (length, 20), "push": (push, 1),
            "close": (close, 1), "abort": (abort, 1), "tag": (tag, 8),
        }  # fmt: skip
        self.tx.queue.append(_pack(fields))

    def consume(self, session, position=None):
        s = self.state[session]
        s["freed"] = s["read"] if position is None else position
        self._free(session, s["freed"], False)

    def release(self, session):
        self.finished.append(self.state.pop(session))
        self._free(session, 0, True)

    def _free(self, session, position, release):
        fields = {"session": (session, 17), "position": (position, 32), "release": (release, 1)}
        self.free.queue.append(_pack(fields))


class Peer:
    """A TCP client by hand: keeps the numbers, sends what the test says."""

    def __init__(
        self,
        world,
        isn=1000,
        rport=4000,
        port=7,
        ip=SERVER_IP_PEER,
        mss=1460,
        scale=None,
        permits=False,
    ):
        self.scale, self.permits = scale, permits
        self.world, self.rport, self.port, self.ip, self.mss = world, rport, port, ip, mss
        self.isn, self.seq, self.ack = isn, isn & M32, 0
        self.window = 65535

    def raw(self, seq, ack=None, flags=ACK, data=b"", **more):
        self.world.send(
            seq, self.ack if ack is None else ack, flags, data, **({"window": self.window} | more),
            rport=self.rport, port=self.port, ip=self.ip,
        )  # fmt: skip

    def send(self, data=b"", flags=ACK, **more):
        """In-order data or flags; moves ``seq`` on."""
        self.raw(self.seq, flags=flags, data=data, **more)
        self.seq = (self.seq + len(data) + bool(flags & FIN)) & M32

    def syn(self):
        more = {"scale": self.scale, "permits": self.permits}
        self.raw(self.isn, ack=0, flags=SYN, mss=self.mss, **more)
        self.seq = (self.isn + 1) & M32

    async def open(self, ctx):
        service = self.world.services[self.world.config.ports.index(self.port)]
        before = self._opens(service)
        self.syn()
        synack = await self.get(ctx)
        assert synack["flags"] == SYN | ACK
        assert synack["ack"] == self.seq
        self.iss = synack["seq"]
        self.ack = (self.iss + 1) & M32
        self.send()
        await self.world.until(ctx, lambda: self._opens(service) > before)
        return synack

    @staticmethod
    def _opens(service):
        return sum(entry[0] == "OPEN" for entry in service.log)

    async def get(self, ctx, **more):
        segment = await self.world.get(ctx, **more)
        assert segment["remote_port"] == self.rport
        assert segment["local_port"] == self.port
        assert segment["ip"] == self.ip
        return segment

    async def expect(self, ctx, flags=ACK, seq=None, ack=None, data=None, **more):
        """The next segment, checked; ``ack`` defaults to all we have sent.

        Acknowledgements of less, or again with a larger window, may come before it.
        """
        while True:
            s = await self.get(ctx, **more)
            if s["flags"] != ACK or s["length"] or s["ack"] == self.seq or ack is not None:
                break
        assert s["flags"] & ~PSH == flags, f"flags of {s}"
        assert s["ack"] == (self.seq if ack is None else ack & M32), f"ack of {s}"
        if seq is not None:
            assert s["seq"] == seq & M32, f"seq of {s}"
        if data is not None:
            assert s["data"] == data, f"data of {s}"
        return s
