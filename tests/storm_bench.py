"""Many clients of TcpEngine at once, under loss, duplication and reordering in both directions."""

from collections import deque
from dataclasses import replace

from net_frames import tag_of
from streams import make_rng
from tcp_bench import ACK, FIN, M32, RST, SMALL, SYN, Service, World


def ahead(a, b):
    """``a`` - ``b`` in sequence space, with sign."""
    return (a - b + (1 << 31) & M32) - (1 << 31)


class Client:
    """A small complete TCP client: sends ``text``, wants it back, closes when it has it all.

    ``options``: what it says in its SYN, and the ``vlan`` that it is in.
    """

    MSS, RTO = 536, 25

    def __init__(self, net, rport, text, isn, window, **options):
        self.net, self.rport, self.text, self.options = net, rport, text, options
        self.shift = self.peer_shift = 0
        self.isn, self.window = isn, window
        self.una = self.nxt = isn
        self.rcv = None
        self.got = b""
        self.fin_in = self.done = False
        self.deadline = 0
        self.dup = 0

    @property
    def closing(self):
        """Whether our FIN follows: once everything has come back."""
        return len(self.got) >= len(self.text)

    @property
    def end(self):
        """One past all that there is to send, FIN included."""
        return (self.isn + 1 + len(self.text) + self.closing) & M32

    def emit(self, seq, flags, data=b""):
        more = (
            self.options if flags & SYN else {k: v for k, v in self.options.items() if k == "vlan"}
        )
        self.net.to_engine(
            dict(
                seq=seq, ack=self.rcv or 0, flags=flags, data=data, rport=self.rport,
                window=max(0, self.window) >> self.shift, mss=self.MSS if flags & SYN else 0,
                **more,
            )
        )  # fmt: skip

    def tick(self, now):
        if self.done:
            return
        if self.rcv is None:
            if now >= self.deadline:
                self.emit(self.isn, SYN)
                self.deadline = now + self.RTO * (4 if self.net.world.config.cookies else 1)
            return
        if self.una != self.nxt and now >= self.deadline:
            self.nxt = self.una  # go back
        self.push(now)

    def push(self, now):
        while ahead(self.end, self.nxt) > 0 and ahead(self.nxt, self.una) < min(
            2000, self.peer_window
        ):
            offset = (self.nxt - self.isn - 1) & M32
            room = self.peer_window - ahead(self.nxt, self.una)
            data = self.text[offset : offset + min(self.MSS, room)]
            fin = offset + len(data) == len(self.text) and self.closing
            if not data and not fin:
                break
            if self.una == self.nxt:
                self.deadline = now + self.RTO
            self.emit(self.nxt, ACK | (FIN if fin else 0), data)
            self.nxt = (self.nxt + len(data) + fin) & M32

    def segment(self, s, now):
        assert s.get("vlan") == self.options.get("vlan"), f"client {self.rport}: tag"
        if s["flags"] & RST:
            assert self.done, f"client {self.rport} was reset"
            return
        if s["flags"] & SYN:
            if self.rcv is None:
                assert s["ack"] == (self.isn + 1) & M32
                self.rcv = (s["seq"] + 1) & M32
                self.una = self.nxt = s["ack"]
                self.peer_window = s["window"]
                if s.get("scaled"):  # not by a SYN cookie
                    self.shift, self.peer_shift = self.options["scale"], self.net.world.config.shift
            self.emit(self.nxt, ACK)
            return
        assert self.rcv is not None
        if ahead(s["ack"], self.una) > 0:
            assert ahead(s["ack"], self.end) <= 0, "acknowledges what was never sent"
            self.una = s["ack"]
            self.deadline = now + self.RTO
            if ahead(self.una, self.nxt) > 0:
                self.nxt = self.una
        self.peer_window = s["window"] << self.peer_shift
        fin = s["flags"] & FIN
        skip = ahead(self.rcv, s["seq"])
        if 0 <= skip <= len(s["data"]) and not self.fin_in:
            data = s["data"][skip:]
            expected = self.text[len(self.got) : len(self.got) + len(data)]
            assert data == expected, f"client {self.rport} got wrong bytes"
            self.got += data
            self.rcv = (self.rcv + len(data) + bool(fin)) & M32
            self.fin_in = bool(fin)
        if s["length"] or fin:
            self.emit(self.nxt, ACK)
        if self.fin_in and self.una == self.end:
            self.done = True  # keeps answering a repeated FIN, above


class Net:
    """Delivers both ways with delay, loss, duplication and so reordering."""

    def __init__(self, seed, loss):
        self.rng, self.loss = make_rng(seed, "net"), loss
        self.flying = []  # (time, to engine?, segment)
        self.clients = {}
        self.world = None

    def _launch(self, inward, segment):
        copies = 0 if self.rng.random() < self.loss else 1 + (self.rng.random() < self.loss)
        if self.world.config.cookies and segment["flags"] & SYN:
            # The second of two SYNs, behind a cookie for the first, may find room for a handshake
            # with another number; the cookie's ACK is then reset (docs/tcp.md).
            copies = min(copies, 1)
        for _ in range(copies):
            late = self.rng.random() < 2 * self.loss
            due = self.world.now + (self.rng.randint(2, 9) if late else 1)
            self.flying.append((due, inward, segment))

    def to_engine(self, segment):
        self._launch(True, segment)

    def from_engine(self, segment):
        self._launch(False, segment)

    def tick(self, now):
        arrived = [f for f in self.flying if f[0] <= now]
        self.flying = [f for f in self.flying if f[0] > now]
        for _, inward, segment in arrived:
            if inward:
                self.world.send(**segment)
            else:
                self.clients[segment["remote_port"]].segment(segment, now)
        for client in self.clients.values():
            client.tick(now)


def storm(seed, count, size, loss, limit, tick=45, most=6, kind=Client, services=None, **changes):
    """``count`` clients, ``most`` at once, each of ``kind``; return the world when all is over."""
    net = Net(seed, loss)
    config = replace(SMALL, isn_start=0, keepalive_idle=3000, user_timeout=9000, retries=12)
    config = replace(config, **changes)
    world = World(
        config, seed=seed, tick=tick,
        services=services or [Service(echo=True), Service(), Service()],
        stall=0.1, wire=net.from_engine,
    )  # fmt: skip
    net.world = world
    rng = make_rng(seed, "text")
    waiting = deque()
    for k in range(count):
        isn = rng.choice((0xFFFFFFFF, 0, 0xFFFFFE00, rng.getrandbits(32)))
        text = rng.randbytes(rng.randint(1, size))
        window, options = rng.choice((900, 4000, 65535)), {}
        if config.vlan:
            options = {"vlan": tag_of(rng.choice((None, k, 0xFFFF)))}
        if config.scaling:
            options |= {"scale": rng.choice((None, 0, 3)), "permits": rng.random() < 0.7}
        waiting.append(kind(net, 1000 + k, text, isn, window, **options))
    clients = list(waiting)

    def start(now):
        running = sum(not c.done for c in net.clients.values())
        while waiting and running < most:
            client = waiting.popleft()
            client.deadline = now
            net.clients[client.rport] = client
            running += 1

    world.timers += [start, net.tick]

    async def script(ctx, world):
        await world.until(ctx, lambda: all(c.done for c in clients), ticks=limit)
        world.timers.remove(start)
        await world.drained(ctx, ticks=2000)
        assert all(c.got == c.text for c in clients)
        assert world.csr(ctx, "timeouts") == 0
        if config.cookies:
            assert world.csr(ctx, "cookies_sent") > 0
        if config.places:
            free = [world.csr(ctx, f"places_free_{k}") for k in range(len(config.ports))]
            assert free == [config.places] * len(config.ports), "a place has leaked"
            world.short = world.csr(ctx, "places_short")
        assert world.csr(ctx, "service_errors") == world.csr(ctx, "tx_overrun") == 0
        if loss:
            assert world.csr(ctx, "retransmits") > 0
            assert world.csr(ctx, "out_of_order") + world.csr(ctx, "dup") > 0

    world.run(script, limit=tick * (limit + 2000))
    return world
