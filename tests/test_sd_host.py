"""The SD host against a card at its pins: data, statuses, and no rule of the bus broken."""

import random

import pytest
from streams import make_rng, seeds
from trebuchet.cores.drive.port import SECTOR, DriveStatus
from trebuchet.cores.sd.host import SdHost
from trebuchet.cores.sd.registers import UNIT
from trebuchet.sim.build import build
from trebuchet.sim.sd import SdFault, run_card, sd_source

pytestmark = pytest.mark.slow

SECTORS = 2048
#: A clock of 400 kHz takes 10 system cycles.
HZ, SLOW = 4_000_000, 10
OK, RANGE, DATA, TIMEOUT, ABSENT = (
    DriveStatus[name].value for name in ("OK", "RANGE", "DATA", "TIMEOUT", "ABSENT")
)


@pytest.fixture(scope="module")
def hosts():
    """The simulator of a host by its lines and width, built once."""
    made = {}

    def get(lines=4, width=32):
        if (lines, width) not in made:
            made[lines, width] = build(sd_source(SdHost(HZ, width=width, lines=lines)))
        return made[lines, width]

    return get


@pytest.fixture
def card(tmp_path, hosts):
    """A function that runs operations on a new card; returns what each printed."""

    def run(operations, lines=4, width=32, **options):
        image = tmp_path / "card.img"
        image.write_bytes(random.Random(1).randbytes(SECTORS * SECTOR))
        options = {"clocks": 0, "slow_cycles": SLOW, "limit": 8_000_000} | options
        return run_card(hosts(lines, width), image, operations, **options)

    return run


def some(rng, count, most=6):
    """Random reads and writes."""
    for _ in range(count):
        sectors = rng.randint(1, most)
        yield f"{rng.choice('rw')} {rng.randrange(SECTORS - sectors)} {sectors}"


def statuses(ran):
    return [line["status"] for line in ran if line["op"] in ("r", "w")]


@seeds(2)
@pytest.mark.parametrize("lines", [4, 1])
@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"early": 1, "gap": 2, "access": 2},
        {"version_2": 0, "high_capacity": 0, "high_speed": 0, "response": 64},
        {"high_capacity": 0, "polls": 20, "gap": 30},
        {"busy": 0, "access": 400, "gap": 200},
        {"busy": 3000, "response": 2},
    ],
    ids=str,
)
def test_every_kind_of_card(card, kind, lines, seed):
    """Cards with and without high speed, early and late data, under back-pressure."""
    rng = make_rng(seed, "sd")
    width = 32 if lines == 4 else 64
    for stall in (0, 500, 970):
        ran = card(["ready", *some(rng, 8)], lines, width, seed=seed, stall=stall, **kind)
        speed = "high" if kind.get("high_speed", 1) else "default"
        assert ran[0] == {"op": "ready", "sectors": SECTORS, "speed": speed}
        assert statuses(ran) == [OK] * 8
        assert ran[-1]["repeats"] == 0


@pytest.mark.parametrize("delay", range(4))
@pytest.mark.parametrize("half", [0, 1, 3])
def test_clocks_and_sample_points(card, delay, half):
    """The card's output comes some cycles late, and is sampled as much later."""
    clocks = half + 1 | half << 8 | delay << 16
    cycles = {"fast_cycles": 2 * half + 4, "high_cycles": 2 * half + 2}
    ran = card(["ready", "r 3 9", "w 5 3"], seed=delay, delay=delay, clocks=clocks, **cycles)
    assert statuses(ran) == [OK, OK]


@seeds(2)
@pytest.mark.parametrize(
    "faults",
    [{"bad_block": 100}, {"bad_end": 100}, {"lost_response": 80}, {"bad_response": 80}],
    ids=str,
)
def test_damage_is_repeated(card, faults, seed):
    """Damaged blocks and responses cost time; data that are reported good are good."""
    rng = make_rng(seed, "sd")
    ran = card(
        ["ready", *(f"{op}\nready" for op in some(rng, 30))], seed=seed, **faults, timeout=40
    )
    assert statuses(ran).count(OK) >= 10
    assert ran[-1]["repeats"] > 0


@pytest.mark.parametrize("faults", [{"refused": 200}, {"late_error": 200}], ids=str)
def test_refused_writes_are_reported(card, faults):
    rng = random.Random(2)
    ran = card(["ready", *some(rng, 40)], seed=2, **faults)
    writes = [line["status"] for line in ran if line["op"] == "w"]
    assert {OK, DATA} == set(writes)
    assert {line["status"] for line in ran if line["op"] == "r"} <= {OK, DATA}


def test_dead_sectors(card):
    """A sector that is damaged each time fails the read with DATA, behind those before it."""
    ran = card(["ready", *(f"r {at} 8" for at in range(0, 800, 8))], dead_blocks=1, bad_block=10)
    reads = [line for line in ran if line["op"] == "r"]
    assert {line["status"] for line in reads} == {OK, DATA}
    for line in reads:
        assert (line["status"] == OK) == (line["bytes"] == 8 * SECTOR)
    assert any(line["bytes"] for line in reads if line["status"] == DATA)


@pytest.mark.parametrize(
    "command",
    ["r 0 0", "r 2048 1", "r 2040 9", "r 281474976710655 3", "r 4294967296 1", "r 4096 7"],
)
def test_beyond_the_end(card, command):
    """RANGE, of a read and of a write; the card stays usable, and its last sectors too."""
    write = command.replace("r", "w")
    ran = card(["ready", command, write, "r 2047 1", "w 2046 2"])
    assert statuses(ran) == [RANGE, RANGE, OK, OK]


@pytest.mark.parametrize("packet", ["short", "long", "torn"])
def test_packets_of_a_wrong_length(card, packet):
    ran = card(["ready", f"{packet} 100 4", "w 100 4", "r 98 8"], stall=300)
    assert statuses(ran) == [DATA, OK, OK]


def test_a_card_that_does_not_answer(card):
    """Data, or the end of busy, after the time-out: TIMEOUT, and the card is identified anew."""
    ran = card(["ready", "r 5 2", "ready"], access=3 * 30 * UNIT, timeout=30)
    assert statuses(ran) == [TIMEOUT]
    ran = card(["ready", "w 5 2", "ready"], busy=3 * 30 * UNIT, timeout=30)
    assert statuses(ran) == [TIMEOUT]


@pytest.mark.parametrize("detect", [1, 0])
@pytest.mark.parametrize("op", ["r", "w"])
def test_removal(card, op, detect):
    """In each phase of a command, with and without a pin that detects it."""
    operations = ["ready"]
    for at in (0, 50, 300, 700, 1500, 3000, 6000, 9000):
        operations += [f"out_in {at}", f"{op} 7 9", f"{op} 7 9", "in", "ready", f"{op} 7 9"]
    ran = card(operations, detect=detect, timeout=30, removal=1, limit=6_000_000)
    found = statuses(ran)
    for first, second, third in zip(found[::3], found[1::3], found[2::3], strict=True):
        assert first in (OK, TIMEOUT, ABSENT, DATA)
        assert second in (TIMEOUT, ABSENT)
        assert third == OK
    assert TIMEOUT in found[::3]


def test_no_card(card):
    """Commands without a card fail at once, and one that comes later is found."""
    ran = card(["out", "r 0 1", "w 0 1", "wait 300000", "r 0 1", "in", "ready", "r 0 1"],
               removal=1, detect=0, timeout=30)  # fmt: skip
    assert statuses(ran)[2:] == [ABSENT, OK]
    assert set(statuses(ran)[:2]) == {ABSENT}


def test_an_idle_card_is_watched(card):
    """Without a pin for it, the removal of an idle card is noticed after a time-out."""
    ran = card(["ready", "wait 1000000", "r 0 1", "out", "wait 300000", "r 0 1"],
               removal=1, detect=0, timeout=30)  # fmt: skip
    assert statuses(ran) == [OK, ABSENT]


def test_share_of_the_bus(card):
    """A long read leaves no clocks between the card's blocks and gaps."""
    read = card(["ready", "r 0 256"], gap=2, access=100)[1]
    assert 256 * 1024 / read["clocks"] >= 0.97
    assert read["cycles"] <= 2 * read["clocks"] + 200


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"slow_cycles": 12}, "more than 400 kHz"), ({"high_cycles": 3}, "too fast|too short")],
    ids=str,
)
def test_the_card_sees_violations(card, wrong, says):
    """The model ends a run in which the host's clock is too fast for the state."""
    with pytest.raises(SdFault, match=says):
        card(["ready", "r 0 1"], **wrong)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"clock_hz": 999_999}, "at least 1 MHz"),
        ({"clock_hz": 300_000_000}, "at most 200 MHz"),
        ({"clock_hz": 50_000_000, "lines": 2}, "must be 1 or 4, not 2"),
    ],
)
def test_parameters_are_checked(arguments, says):
    with pytest.raises(ValueError, match=says):
        SdHost(**arguments)
