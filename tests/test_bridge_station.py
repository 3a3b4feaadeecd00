"""The board as a third station on the wire: who gets which frame, and by which port ours leave."""

import pytest
from bridge_bench import Frame, counters, drain, expected, feed
from streams import make_rng, run, seeds, stream_checker
from trebuchet.cores.bridge.bridge import BRIDGE_BLOCK, DIRECTIONS
from trebuchet.cores.bridge.station import ENABLED_BLOCK, BridgeStation

SHORTEST, LONGEST = 20, 80
OURS, HOST, SECOND = (
    bytes.fromhex(text) for text in ("02a1b2c3d4e5", "5433221100fe", "52aa0b0c0d0e")
)
#: Addresses that differ from ours or the host's in a bit of one byte.
NEAR = [
    bytes(byte ^ (0x80 if k == at else 0) for k, byte in enumerate(address))
    for address in (OURS, HOST)
    for at in range(6)
]
GROUPS = [bytes.fromhex(text) for text in ("ffffffffffff", "01005e000001", "03a1b2c3d4e5")]


class Model:
    """What a station of data path ``n`` bytes takes and learns, frame by frame."""

    def __init__(self, n, ours=OURS):
        self.n, self.ours, self.host = n, ours, bytes(6)

    def takes(self, data, error):
        """The frame goes to the station."""
        rest = len(data) > {4: 8, 8: 8, 16: 16}[self.n]
        return not error and rest and (data[:6] == self.ours or data[0] & 1 == 1)

    def drops(self, data):
        """The beat on which it is taken off the wire, or None."""
        return 5 // self.n if data[:6] == self.ours else None

    def hears(self, data, error):
        """A frame from the host."""
        if not error and len(data) > {4: 12, 8: 16, 16: 16}[self.n] and not data[6] & 1:
            self.host = data[6:12]

    def ports(self, data):
        """Where a frame of the station leaves."""
        if data[0] & 1:
            return (0, 1)
        return (1,) if data[:6] == self.host else (0,)


def merged(got, one, other):
    """``got`` is a merger of the two, in order, with nothing left."""
    one, other = list(one), list(other)
    for item in got:
        if one and item == one[0]:
            one.pop(0)
        elif other and item == other[0]:
            other.pop(0)
        else:
            raise AssertionError(f"out of place, altered or unknown: {item.hex()}")
    assert not one
    assert not other


def wire_frames(rng, count, sources):
    """Frames as they come from a port, for anybody, of any length, some damaged."""
    frames = []
    for _ in range(count):
        kind = rng.random()
        to = OURS if kind < 0.3 else rng.choice(GROUPS) if kind < 0.5 else rng.choice(NEAR + [HOST])
        size = rng.choice([8, 9, 12, 13, 16, 17, SHORTEST - 1, SHORTEST, LONGEST, LONGEST + 1])
        size = rng.choice([size, rng.randint(6, 100)])
        data = to + rng.choice(sources) + rng.randbytes(90)
        frames.append((data[:size], rng.random() < 0.15))
    return frames


def own_frames(rng, count):
    """Frames of the stack; it sends legal ones, but does not pad."""
    choice = [HOST, HOST, SECOND, *NEAR, *GROUPS]
    return [
        (rng.choice(choice) + OURS + rng.randbytes(rng.choice([2, 30, 60, LONGEST - 12])), False)
        for _ in range(count)
    ]


class Wire:
    """All that comes in and goes out in one phase of a test."""

    def __init__(self, dut, model, rng, *, inbound=(), outbound=(), own=()):
        n = model.n
        self.ways, self.own, self.model = (inbound, outbound), own, model
        self.passed, self.counts = [], []
        for frames in self.ways:
            said = [Frame(data, error, drop=model.drops(data)) for data, error in frames]
            passed, counts = expected(said, n, SHORTEST, LONGEST, True)
            self.passed.append([data for data, _ in passed])
            self.counts.append(counts)
        self.local = [[d for d, e in frames if model.takes(d, e)] for frames in self.ways]
        for data, error in outbound:
            model.hears(data, error)
        self.sent = [[d for d, _ in own if port in model.ports(d)] for port in (0, 1)]


def ports(dut):
    return (dut.network_rx, dut.host_rx), (dut.network_tx, dut.host_tx)


def benches(dut, wire, seed, label, stalls=(0.3, 0.3, 0.3)):
    """Feed a phase, and take everything that must come out of it."""
    (rx, tx), got = ports(dut), ([], [], [])
    made = []
    for port in (0, 1):
        count = len(wire.passed[1 - port]) + len(wire.sent[port])
        rng = make_rng(seed, f"{label} out {port}")
        made.append(feed(rx[port], wire.ways[port], make_rng(seed, f"{label} in {port}")))
        made.append(drain(tx[port], got[port], count, rng, stalls[port]))
    made.append(feed(dut.tx, wire.own, make_rng(seed, f"{label} own")))
    count = sum(map(len, wire.local))
    made.append(drain(dut.rx, got[2], count, make_rng(seed, f"{label} rx"), stalls[2]))
    return made, got


def check(wire, got):
    for port in (0, 1):
        assert not any(error for _, error in got[port])
        merged([d for d, _ in got[port]], wire.passed[1 - port], wire.sent[port])
    assert not any(error for _, error in got[2])
    merged([d for d, _ in got[2]], *wire.local)


def unbroken(stream, name):
    """A background bench: a frame that has begun offers a beat in each cycle up to its last."""

    async def check(ctx):
        inside = False
        while True:
            _, _, valid, ready, last = await ctx.tick().sample(
                stream.valid, stream.ready, stream.p.last
            )
            assert valid or not inside, f"{name}: a pause within a frame, which no line has"
            if valid and ready:
                inside = not last

    check.background = True
    return check


async def settled(ctx, dut):
    """Everything is out, and nothing follows."""
    for _ in range(200):
        _, _, *valid = await ctx.tick().sample(
            dut.network_tx.valid, dut.host_tx.valid, dut.rx.valid
        )
        assert not any(valid), "a frame too many"


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(3)
def test_every_frame_goes_where_the_model_says(width, seed):
    """Nobody known; then one host; then another: with traffic both ways and from the board."""
    dut = BridgeStation(width, shortest=SHORTEST, longest=LONGEST)
    model, rng = Model(width // 8), make_rng(seed, "frames")
    anyone = [HOST, SECOND, *NEAR, *GROUPS]
    first = wire_frames(rng, 40, anyone)
    silent = [(d[:6] + GROUPS[1] + d[12:], e) for d, e in wire_frames(rng, 20, anyone)]
    phases = [
        Wire(dut, model, rng, inbound=first, outbound=silent, own=own_frames(rng, 25)),
        # What the host says once settles its address; groups, damage and runts change nothing.
        Wire(dut, model, rng, outbound=[(GROUPS[0] + HOST + bytes(range(40)), False)]),
        Wire(
            dut,
            model,
            rng,
            inbound=wire_frames(rng, 40, anyone),
            outbound=[
                *wire_frames(rng, 30, [HOST]),
                *((GROUPS[1] + SECOND + rng.randbytes(30), True) for _ in range(5)),
                *((HOST + GROUPS[0] + rng.randbytes(30), False) for _ in range(5)),
                *((HOST + SECOND, False) for _ in range(3)),
            ],
            own=own_frames(rng, 40),
        ),
        Wire(dut, model, rng, outbound=[(HOST + SECOND + rng.randbytes(30), False)]),
        Wire(dut, model, rng, inbound=wire_frames(rng, 30, [HOST]), own=own_frames(rng, 30)),
    ]
    assert model.host == SECOND
    done = []

    async def everything(ctx):
        ctx.set(dut.csr.enable, 1)
        ctx.set(dut.mac, int.from_bytes(OURS, "little"))
        for k, _ in enumerate(phases):
            while len(done) < 6 * (k + 1):
                await ctx.tick()
            await settled(ctx, dut)
            started.append(k + 1)
        told = counters(ctx, dut.csr)
        for d, name in enumerate(DIRECTIONS):
            for event in ("passed", "dropped", "damaged", "runt", "oversize"):
                wanted = sum(wire.counts[d][event] for wire in phases)
                assert told[f"{name}_{event}"] == wanted, (name, event)
            assert told[f"{name}_injected"] == sum(len(w.sent[1 - d]) for w in phases)
            assert told[f"{name}_refused"] == told[f"{name}_altered"] == 0
            assert ctx.get(getattr(dut.csr_station, f"{name}_lost")) == 0
        assert ctx.get(dut.csr_station.host_mac) == int.from_bytes(SECOND, "little")

    started, collected, made = [0], [], []

    def staged(bench, k):
        async def wait(ctx):
            while started[-1] < k:
                await ctx.tick()
            await bench(ctx)
            done.append(k)

        return wait

    for k, wire in enumerate(phases):
        parts, got = benches(dut, wire, seed, f"phase {k}")
        collected.append((wire, got))
        made += [staged(bench, k) for bench in parts]
    checkers = [
        stream_checker(stream, name)
        for name, stream in (("network", dut.network_tx), ("host", dut.host_tx), ("rx", dut.rx))
    ]
    checkers += [unbroken(dut.network_tx, "network"), unbroken(dut.host_tx, "host")]
    run(dut, everything, *made, *checkers, limit=40_000, seed=seed)
    for wire, got in collected:
        check(wire, got)
    last = collected[2][0]
    assert all(last.sent), "the test must send by both ports"


@seeds(3)
def test_a_deaf_stack_holds_nobody_up(seed):
    """No room: frames for the board are lost whole and counted; those that pass never wait."""
    dut = BridgeStation(32, depth=32, shortest=SHORTEST, longest=LONGEST)
    rng, model = make_rng(seed, "frames"), Model(4)
    inbound, outbound = (wire_frames(rng, 60, [SECOND]) for _ in range(2))
    wire = Wire(dut, model, rng, inbound=inbound, outbound=outbound)
    (rx, tx), got, heard = ports(dut), ([], []), []
    made = []
    for port in (0, 1):
        made += [
            feed(rx[port], wire.ways[port], make_rng(seed, f"in {port}")),
            drain(tx[port], got[port], len(wire.passed[1 - port]), make_rng(seed, f"out {port}")),
        ]

    async def listen(ctx):
        ctx.set(dut.csr.enable, 1)
        ctx.set(dut.mac, int.from_bytes(OURS, "little"))
        while any(len(got[port]) < len(wire.passed[1 - port]) for port in (0, 1)):
            await ctx.tick()
        await ctx.tick().repeat(100)
        lost = [ctx.get(getattr(dut.csr_station, f"{name}_lost")) for name in DIRECTIONS]
        assert all(lost), lost
        count = sum(map(len, wire.local)) - sum(lost)
        await drain(dut.rx, heard, count, make_rng(seed, "rx"))(ctx)
        await settled(ctx, dut)
        # There is room again.
        again = OURS + HOST + rng.randbytes(40)
        await feed(dut.host_rx, [(again, False)], rng)(ctx)
        await drain(dut.rx, heard, count + 1, rng)(ctx)
        assert heard.pop() == (again, False)

    run(dut, listen, *made, stream_checker(dut.rx), limit=40_000, seed=seed)
    for port in (0, 1):
        assert [d for d, _ in got[port]] == wire.passed[1 - port]
    rest = [list(frames) for frames in wire.local]
    for data, _ in heard:  # in the order of its direction, with gaps
        way = 0 if data in rest[0] else 1
        assert data in rest[way], f"heard what was not said, or out of order: {data.hex()}"
        del rest[way][: rest[way].index(data) + 1]


@seeds(2)
def test_while_disabled_the_board_is_not_there(seed):
    """Frames pass, also those for the board; it hears nothing, and what it sends goes nowhere."""
    dut = BridgeStation(32, shortest=SHORTEST, longest=LONGEST)
    rng = make_rng(seed, "frames")
    ways = [wire_frames(rng, 30, [HOST]) for _ in range(2)]
    own = own_frames(rng, 20)
    wanted = [
        [d for d, _ in expected([Frame(d, e) for d, e in frames], 4, SHORTEST, LONGEST, True)[0]]
        for frames in ways
    ]
    (rx, tx), got = ports(dut), ([], [])
    made = [feed(dut.tx, own, make_rng(seed, "own"))]
    for port in (0, 1):
        made += [
            feed(rx[port], ways[port], make_rng(seed, f"in {port}")),
            drain(tx[port], got[port], len(wanted[1 - port]), make_rng(seed, f"out {port}")),
        ]

    async def watch(ctx):
        ctx.set(dut.csr.enable, 0)
        ctx.set(dut.mac, int.from_bytes(OURS, "little"))
        while any(len(got[port]) < len(wanted[1 - port]) for port in (0, 1)):
            _, _, heard = await ctx.tick().sample(dut.rx.valid)
            assert not heard
        await settled(ctx, dut)
        told = counters(ctx, dut.csr)
        refused = told["inbound_refused"] + told["outbound_refused"]
        assert refused == sum(1 + (d[0] & 1) for d, _ in own)

    run(dut, watch, *made, limit=30_000, seed=seed)
    for port in (0, 1):
        assert [d for d, _ in got[port]] == wanted[1 - port]


def test_the_register_is_on_after_reset():
    assert {r.name: r.reset for r in ENABLED_BLOCK.registers}["enable"] == 1
    assert [r.name for r in ENABLED_BLOCK.registers] == [r.name for r in BRIDGE_BLOCK.registers]


@seeds(2)
def test_one_port_that_stalls_does_not_change_what_the_other_sends(seed):
    """Group frames to both ports, one of which takes a beat now and then."""
    dut = BridgeStation(64, shortest=SHORTEST, longest=LONGEST)
    rng, model = make_rng(seed, "frames"), Model(8)
    own = [(rng.choice(GROUPS) + OURS + rng.randbytes(60), False) for _ in range(30)]
    wire = Wire(dut, model, rng, own=own)
    made, got = benches(dut, wire, seed, "stall", stalls=(0.0, 0.95, 0.3))

    async def enable(ctx):
        ctx.set(dut.csr.enable, 1)

    run(dut, enable, *made, limit=30_000, seed=seed)
    check(wire, got)
