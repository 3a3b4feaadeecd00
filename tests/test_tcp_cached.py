"""Records in memory, and the store that caches them, against a dictionary."""

import itertools
from dataclasses import replace

import pytest
from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from streams import MemoryResponder, make_rng, plain, run, seeds
from tcp_bench import SMALL
from trebuchet.cores.tcp import line
from trebuchet.cores.tcp.cached import CachedStore
from trebuchet.cores.tcp.config import FULL
from trebuchet.cores.tcp.record import (
    NUMBERS,
    RUNS,
    TIME_WIDTH,
    descriptor_layout,
    peer_layout,
    record_layout,
)

M32 = (1 << 32) - 1
CONFIG = replace(SMALL, width=64, sessions=16, segments=16, cache=4)
#: Fields of a record at rest that mean nothing, or the same whatever they are.
IDLE = {"segment", *(name for run in RUNS for name in run), "rtt_seq", "rtt_start"}
#: What is to be sent or told: a session that waits for any of it is not at rest.
DUE = ("syn_due", "rst_due", "resend", "probe", "keepalive", "check")
DUE += ("ev_open", "ev_data", "ev_eof", "dup_acks")
#: Fields that the store alone writes.
LISTED = ("on_active", "on_event", "on_recycle", "on_wheel", "wake")


def width(shape):
    return Value.cast(Signal(shape)).shape().width


def random_record(rng, config=CONFIG):
    """Any record: mostly at rest, or nearly so."""
    record = {n: rng.getrandbits(width(s)) for n, s in record_layout(config).members.items()}
    record["phase"] = rng.randint(0, 4)
    if rng.random() < 0.7:
        record |= dict.fromkeys(("snd_nxt", "snd_max", "snd_end"), record["snd_una"])
        record |= dict.fromkeys(("has_segment", "kept", "recovering", "count", "ahead", *DUE), 0)
        record |= {"flight": 0, "rtt_on": 0, "rcv_pub": record["rcv_nxt"]}
        record["rcv_cons"] = (record["rcv_nxt"] - record["fin_seen"]) & M32
    if rng.random() < 0.3:
        name = rng.choice(list(line.extension_layout(config).members))
        record[name] ^= 1 << rng.randrange(width(record_layout(config).members[name]))
    return record


def rests(record):
    """What "at rest" is, in the words of ``line.py``."""
    same = all(record[n] == record["snd_una"] for n in ("snd_nxt", "snd_max", "snd_end"))
    nothing = ("has_segment", "kept", "recovering", "count", "ahead", "flight", "rtt_on", *DUE)
    consumed = record["rcv_cons"] == (record["rcv_nxt"] - record["fin_seen"]) & M32
    quiet = same and consumed and record["rcv_pub"] == record["rcv_nxt"]
    return record["phase"] == 0 or (quiet and not any(record[n] for n in nothing))


def settled(record):
    """The record as it may come back from memory."""
    if not rests(record):
        return record
    back = record | dict.fromkeys(("snd_nxt", "snd_max", "snd_end", "recover"), record["snd_una"])
    back |= dict.fromkeys(("has_segment", "kept", "recovering", "count", "ahead", *DUE), 0)
    back |= {"flight": 0, "rtt_on": 0, "rcv_pub": record["rcv_nxt"]}
    back |= dict.fromkeys(IDLE & record.keys(), 0)
    return back | {"rcv_cons": (record["rcv_nxt"] - record["fin_seen"]) & M32}


class Packer(wiring.Component):
    """A record through a line and an extension."""

    def __init__(self, config):
        self.config, layout = config, record_layout(config)
        super().__init__(
            {
                "record": In(layout),
                "peer": In(peer_layout(config)),
                "rests": Out(1),
                "line": Out(512),
                "back": Out(layout),
                "whole": Out(layout),
                "peer_back": Out(peer_layout(config)),
            }
        )

    def elaborate(self, platform):
        m, config = Module(), self.config
        packed = data.View(line.line_layout(config), self.line)
        again, rest = (Signal(line.extension_layout(config), name=n) for n in ("again", "rest"))
        m.d.comb += [
            self.rests.eq(line.at_rest(self.record)),
            self.line.eq(line.pack_line(config, self.record, self.peer, ~self.rests)),
            Value.cast(again).eq(line.unpack(config, packed.rest)),
            [rest[name].eq(self.record[name]) for name in line.extension_layout(config).members],
            Value.cast(self.back).eq(line.whole(config, packed.rest, again)),
            Value.cast(self.whole).eq(line.whole(config, packed.rest, rest)),
            self.peer_back.eq(packed.peer),
        ]
        return m


@seeds(2)
@pytest.mark.parametrize(
    "config",
    [CONFIG, replace(CONFIG, sessions=131072, segments=1 << 17), FULL],
    ids=["few", "many", "full"],
)
def test_a_record_comes_back_from_its_line(config, seed):
    """Whatever its line alone says of a record at rest is right; rest is told exactly."""
    rng, dut, kinds = make_rng(seed, "pack"), Packer(config), set()

    async def bench(ctx):
        for _ in range(200):
            record = random_record(rng, config)
            peer = {n: rng.getrandbits(width(s)) for n, s in peer_layout(config).members.items()}
            ctx.set(dut.record, record)
            ctx.set(dut.peer, peer)
            await ctx.tick()
            assert ctx.get(dut.rests) == rests(record)
            assert plain(ctx.get(dut.peer_back)) == peer
            assert as_numbers(ctx.get(dut.whole)) == record
            kinds.add(rests(record))
            if rests(record):
                assert as_numbers(ctx.get(dut.back)) == settled(record)
            assert ctx.get(dut.line) >> 511 == (not rests(record))

    run(dut, bench, limit=1000, seed=seed)
    assert kinds == {False, True}


def as_numbers(record):
    return {name: getattr(value, "value", value) for name, value in plain(record).items()}


def test_a_record_too_long_for_its_line_is_refused(monkeypatch):
    layout = record_layout(CONFIG).members
    wide = data.StructLayout({**layout, "more": 200})
    monkeypatch.setattr(line, "record_layout", lambda config: wide)
    with pytest.raises(ValueError, match=r"^Record at rest must fit a line, not be \d+ bits too"):
        line.line_layout(CONFIG)


def test_an_extension_too_long_is_refused(monkeypatch):
    layout = record_layout(CONFIG).members
    wide = data.StructLayout({**layout, "kept_to": 300})
    monkeypatch.setattr(line, "record_layout", lambda config: wide)
    with pytest.raises(ValueError, match=r"^Extension must be 512 bits long at most, not \d{3}$"):
        line.extension_layout(CONFIG)


ENGINES = ("receive", "transmit", "timer", "events")


class Users:
    """Engines that check out sessions at random, and a dictionary of what must be there.

    ``transmit``, ``events`` and ``timer`` serve no list here: what they hand back puts no session
    on one (nothing due, nothing told, no TIME-WAIT).
    """

    def __init__(self, config, rng, numbers, turns):
        layout = record_layout(config)
        fields = tuple(name for name in layout.members if name not in LISTED)
        self.config, self.rng, self.numbers, self.turns = config, rng, numbers, turns
        self.dut = CachedStore(config, dict.fromkeys(ENGINES, fields))
        self.records, self.peers, self.rings = {}, {}, {}
        self.lent = set()
        self.had_session = {}
        self.now = rng.getrandbits(TIME_WIDTH)
        self.fresh = 0  # the next number that was never used
        self.cycles = {}  # from request to grant, by engine

    def _number(self):
        if self.fresh < self.config.sessions and self.rng.random() < self.numbers:
            self.fresh += 1
            return self.fresh - 1
        return self.rng.randrange(max(1, self.fresh))

    def _calm(self, record):
        quiet = ("ack_due", "syn_due", "rst_due", "resend", "probe", "keepalive", "check")
        record |= dict.fromkeys((*quiet, "ev_open", "ev_data", "ev_eof", "ev_closed"), 0)
        return record | {"blocked": 1, "released": 0, "has_segment": 0, **dict.fromkeys(LISTED, 0)}

    def engine(self, name):
        dut, rng, port = self.dut, self.rng, getattr(self.dut, name)

        async def bench(ctx):
            while not ctx.get(dut.ready):
                await ctx.tick()
            for _ in range(self.turns):
                for _ in range(rng.randint(0, 6)):
                    await ctx.tick()
                await turn(ctx)

        async def turn(ctx):
            n = self._number() if name == "receive" else rng.randrange(max(1, self.fresh))
            ctx.set(port.session, n)
            ctx.set(port.request, 1)
            waited = 0
            while not ctx.get(port.grant):
                await ctx.tick()
                waited += 1
                assert waited < 5000, f"{name} never gets session {n}"
            self.cycles.setdefault(name, []).append(waited)
            assert not self.lent, f"{name} is lent {n} beside {self.lent}"
            self.lent.add(n)
            await self._use(ctx, name, port, n)
            ctx.set(port.request, 0)
            self.lent.discard(n)

        return bench

    async def _use(self, ctx, name, port, n):
        dut, rng = self.dut, self.rng
        seen = as_numbers(ctx.get(port.record))
        placed = {name: seen.pop(name) for name in ("on_wheel", "wake")}
        assert not any(seen[name] for name in LISTED[:3])
        if n in self.records:  # what has a session is on a wheel once it was handed back
            assert placed["on_wheel"] or not self.had_session.get(n)
        seen |= dict.fromkeys(("on_wheel", "wake"), 0)
        if n not in self.records:
            assert not any(seen.values()), f"session {n} is not empty"
        else:
            assert seen in (self.records[n], settled(self.records[n])), f"session {n} has changed"
        ring = self.rings.setdefault(n, {})
        counts = seen["count"] != 0 and n in self.records and not rests(self.records[n])
        for k in rng.sample(range(4), rng.randint(0, 2)):
            if name in ("transmit", "events"):
                ctx.set(getattr(dut, f"address_{name}"), n << 2 | k)
                await ctx.tick()
                if counts and k in ring:
                    assert as_numbers(ctx.get(dut.descriptor)) == ring[k]
            elif name == "receive":
                entry = {
                    f: rng.getrandbits(width(s)) for f, s in descriptor_layout().members.items()
                }
                ctx.set(dut.entry, entry)
                ctx.set(dut.entry_address, n << 2 | k)
                ctx.set(dut.enter, 1)
                await ctx.tick()
                ctx.set(dut.enter, 0)
                ring[k] = entry
        await ctx.tick()
        if n in self.peers:
            assert as_numbers(ctx.get(dut.peer)) == self.peers[n], f"peer of {n} has changed"
        if rng.random() < 0.8 or n not in self.peers:
            record = self._calm(random_record(rng, self.config))
            if rng.random() < 0.3:
                same = [f for f in NUMBERS if f in seen and rng.random() < 0.5]
                record |= {f: seen[f] for f in same}
            self.records[n] = record
        else:
            self.records[n] = seen
        if rests(self.records[n]) or n not in self.peers:
            self.rings[n] = {} if rests(self.records[n]) else self.rings[n]
        if name == "receive" and (n not in self.peers or rng.random() < 0.3):
            fields = peer_layout(self.config).members
            self.peers[n] = {f: rng.getrandbits(width(s)) for f, s in fields.items()}
            ctx.set(dut.new_peer, self.peers[n])
            ctx.set(dut.peer_write, 1)
        self.had_session[n] = self.had_session.get(n) or bool(self.records[n]["phase"])
        self.now = (self.now + rng.randint(0, 3)) % (1 << TIME_WIDTH)
        ctx.set(dut.now, self.now)
        self._hand_back(ctx, port, seen, self.records[n])
        ctx.set(port.commit, 1)
        await ctx.tick()
        ctx.set(port.commit, 0)
        ctx.set(dut.peer_write, 0)

    def _hand_back(self, ctx, port, seen, record):
        """Numbers that are as they were ``seen`` are not named, and rubbish is in their place."""
        changes = {f: record[f] != seen[f] for f in port.changes.shape().members}
        if changes["progress"]:
            record["progress"] = self.now
        result = {f: record[f] for f in port.result.shape().members}
        result["deadline"] = (record["deadline"] - self.now) % (1 << TIME_WIDTH)
        for f in result:
            if not changes.get(f, True):
                result[f] = self.rng.getrandbits(width(port.result.shape().members[f]))
        ctx.set(port.result, result)
        ctx.set(port.changes, changes)


class Wheels:
    """Takes every place; ``behind``: later, and only once memory's answers have been taken.

    So it is when wheels and mover share a memory port: what the mover does not take is in front of
    what the wheels wait for.
    """

    background = True

    def __init__(self, dut, behind):
        self.dut, self.behind = dut, behind

    async def __call__(self, ctx):
        dut, rdata = self.dut, self.dut.mem.rdata
        ctx.set(dut.place_taken, not self.behind)
        free = 0  # cycles in a row that nothing stood in the way
        async for _, _, place, valid, ready in ctx.tick().sample(
            dut.place, rdata.valid, rdata.ready
        ):
            free = free + 1 if place and (ready or not valid) else 0
            ctx.set(dut.place_taken, not self.behind or free > 6)


class Hints:
    """Hints at any session, used or next to be used, asked for soon or not at all."""

    background = True

    def __init__(self, users, rng):
        self.users, self.rng, self.given = users, rng, 0

    async def __call__(self, ctx):
        dut, rng, users = self.users.dut, self.rng, self.users
        while True:
            for _ in range(rng.choice((0, 5, 40))):
                await ctx.tick()
            ctx.set(dut.hint_session, rng.randrange(min(users.fresh + 1, users.config.sessions)))
            ctx.set(dut.hint, 1)
            await ctx.tick().until(dut.hint_taken)
            ctx.set(dut.hint, 0)
            self.given += 1


@seeds(1)
@pytest.mark.parametrize(
    ("width_", "behind", "hints"),
    [
        (64, True, True),
        *(
            pytest.param(*values, marks=pytest.mark.nightly)
            for values in itertools.product((32, 64), (False, True), (False, True))
            if values != (64, True, True)
        ),
    ],
)
def test_engines_find_what_was_left(seed, width_, behind, hints):
    rng = make_rng(seed, "cached")
    more = {"runs": 4, "sack": True, "vlan": True} if hints else {}
    config = replace(CONFIG, width=width_, **more)
    users = Users(config, rng, numbers=0.6, turns=40)
    memory = bytearray(rng.randbytes(1 << 13))  # full of rubbish
    latency = rng.choice([(4, 10), (4, 80), (40, 40)])
    responder = MemoryResponder(users.dut.mem, memory, rng=rng, latency=latency)
    wheels = Wheels(users.dut, behind)
    others = [Hints(users, make_rng(seed, "hints"))] if hints else []
    engines = [users.engine(name) for name in ENGINES]
    run(users.dut, responder, wheels, *others, *engines, limit=200_000, seed=seed)
    assert users.fresh == config.sessions
    assert all(hinter.given > 10 for hinter in others)
