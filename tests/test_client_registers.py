"""Registers by name: the client library, blocking and awaited, and `trebuchet registers`."""

import json

import pytest
from fake_board import BOARDS, FakeBoard
from fake_registers import BASE, NIC, REGIONS, RegisterBoard
from trebuchet.client import Board, BoardError
from trebuchet.host.cli import main
from trebuchet.models import register_map
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc.csr_export import json_map

RTO_MIN, OCTETS, SEEN, MAC = BASE + 4, BASE + 20, BASE + 0x808, BASE + 0x80C


@pytest.fixture(params=BOARDS)
def connect(request):
    return BOARDS[request.param]


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """A board whose build is in the only folder of builds."""
    monkeypatch.setattr(register_map, "BUILD", tmp_path / "build")
    monkeypatch.setattr(register_map, "MAPS", tmp_path / "build" / "register_maps")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "build" / "fake").mkdir(parents=True)
    with RegisterBoard(tmp_path / "build" / "fake") as fake:
        fake.registers.words |= {BASE: 1, RTO_MIN: 200, BASE + 8: 1000, BASE + 12: 7}
        yield fake


def test_reads_runs_of_registers_at_once(connect, fake):
    with connect(fake.address, **fake.options()) as board:
        values = board.read_registers("tcp", "nic.mode.high", "nic.mode")
        assert values["tcp.rto_min"] == 200
        assert list(values) == [
            *("tcp.enable", "tcp.rto_min", "tcp.rto_initial", "tcp.segments", "tcp.octets"),
            *("nic.mode.high", "nic.mode"),
        ]
        assert board.read_registers() == {}
    assert [line.split()[:3] for line in fake.registers.lines][:3] == [
        ["peek", "0xf0000000", "4"],
        ["peek", "0xf0000014", "2"],  # nothing is read from the register that is written only
        ["peek", "0xf0000804", "1"],
    ]
    assert fake.requests == 1


def test_a_wide_counter_is_read_until_its_upper_half_stays(connect, fake):
    """A carry between the reads of its two words."""
    words, carry = fake.registers.words, [True]
    words |= {OCTETS: 0xFFFF_FFFF, OCTETS + 4: 1}

    def on_read(address):
        if address == OCTETS + 4 and carry:
            carry.clear()
            words.update({OCTETS: 0, OCTETS + 4: 2})

    fake.registers.on_read = on_read
    with connect(fake.address, **fake.options()) as board:
        assert board.read_registers("tcp.octets") == {"tcp.octets": 2 << 32}


def test_writes_registers_and_fields(connect, fake):
    words = fake.registers.words
    with connect(fake.address, **fake.options()) as board:
        board.write_register("tcp.rto_min", 300)
        board.write_register("nic.mac", 0x0200_0000_0005)
        words[BASE + 0x804] = 0x5A
        board.write_register("nic.mode.high", 0xF)
        board.write_register("tcp.go", 1)
    assert (words[RTO_MIN], words[MAC], words[MAC + 4]) == (300, 5, 0x0200)
    assert words[BASE + 0x804] == 0xFA
    pokes = [line.split()[1] for line in fake.registers.lines if line.startswith("poke")]
    assert pokes == [hex(a) for a in (RTO_MIN, MAC, MAC + 4, BASE + 0x804, BASE + 16)]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("tcp.segments", 1, "register tcp.segments is read-only"),
        ("nic.status.pending", 1, "register nic.status is read-only"),
        ("tcp.rto_min", 1 << 16, "tcp.rto_min must be 0 to 65535 (16 bits), not 65536"),
        ("tcp.rto_min", -1, "tcp.rto_min must be 0 to 65535 (16 bits), not -1"),
        ("nic.mode.low", 16, "nic.mode.low must be 0 to 15 (4 bits), not 16"),
        ("tcp.rto_mim", 1, "there is no register 'tcp.rto_mim', did you mean 'tcp.rto_min'?"),
        ("nic.seen.late", 1, "register nic.seen does not keep what is written: write it as a whol"),
    ],
)
def test_writes_that_are_refused(connect, fake, name, value, said):
    with connect(fake.address, **fake.options()) as board:
        with pytest.raises(TrebuchetError) as caught:
            board.write_register(name, value)
        assert str(caught.value).startswith(said)
        with pytest.raises(BoardError, match=r"^register tcp.go can only be written$"):
            board.read_registers("tcp.go")
    assert fake.registers.lines == []


def test_registers_as_attributes(fake):
    with Board(fake.address, **fake.options()) as board:
        assert board.registers.tcp.rto_min == 200
        board.registers.tcp.rto_min = 250
        assert fake.registers.words[RTO_MIN] == 250
        fake.registers.words[BASE + 0x800] = 0x1F
        status = board.registers.nic.status
        assert (status, status.pending) == (0x1F, 1)
        assert "pending" in dir(status)
        assert {"tcp", "nic"} <= set(dir(board.registers))
        assert "rto_min" in dir(board.registers.tcp)
        assert [list(block)[0] for block in board.registers] == ["enable", "status"]
        for wrong in (
            lambda: board.registers.tpc,
            lambda: board.registers.tcp.rto_mim,
            lambda: setattr(board.registers.tcp, "rto_mim", 1),
            lambda: status.peding,
        ):
            with pytest.raises(AttributeError):
                wrong()
        with pytest.raises(AttributeError, match="did you mean 'tcp.rto_min'"):
            board.registers.tcp.rto_mim = 5
    assert fake.requests == 1


def test_a_board_whose_map_is_nowhere(connect, fake, tmp_path):
    fake.map_file.rename(tmp_path / "copied.json")
    with connect(fake.address, **fake.options()) as board:
        with pytest.raises(BoardError) as caught:
            board.read_registers("tcp.rto_min")
        assert str(caught.value) == (
            f"{fake.address} runs a build of 'fake' of version 0.1.0 with the registers "
            f"{fake.registers.map_hash}, of which no map is here: copy registers.json from the "
            "folder of that build and name it with --map FILE"
        )
        board.register_map(tmp_path / "copied.json")
        assert board.read_registers("tcp.rto_min") == {"tcp.rto_min": 200}
    with connect(fake.address, **fake.options()) as board:  # it was kept
        assert board.read_registers("tcp.rto_min") == {"tcp.rto_min": 200}


def test_a_map_of_another_build(connect, fake, tmp_path):
    (tmp_path / "other.json").write_text(json_map([(NIC, BASE)]))
    with connect(fake.address, **fake.options()) as board:
        with pytest.raises(BoardError, match=rf"{fake.registers.map_hash}, not [0-9a-f]+ of .*oth"):
            board.register_map(tmp_path / "other.json")


def test_a_board_that_gets_another_build_refuses_old_addresses(connect, fake):
    with connect(fake.address, **fake.options()) as board:
        assert board.read_registers("tcp.rto_min") == {"tcp.rto_min": 200}
        good, fake.registers.map_hash = fake.registers.map_hash, "0" * 16
        with pytest.raises(BoardError, match=r"was given another build just now; try again$"):
            board.write_register("tcp.rto_min", 1)
        assert fake.registers.words[RTO_MIN] == 200
        with pytest.raises(BoardError, match="of which no map is here"):
            board.write_register("tcp.rto_min", 1)
        fake.registers.map_hash = good
        board.write_register("tcp.rto_min", 1)


def test_a_board_without_a_hash(connect, fake):
    with FakeBoard() as old, connect(old.address, **old.options()) as board:
        with pytest.raises(BoardError, match="does not say which registers it has: update its fir"):
            board.read_registers("tcp")


@pytest.mark.parametrize("said", ["", "f0000004: 1\n", "f0000008: 00000001\n", "x\n" * 9])
def test_answers_that_no_board_gives(connect, fake, said, monkeypatch):
    monkeypatch.setattr(type(fake.registers), "get", lambda self, line, default: (0, said))
    with connect(fake.address, **fake.options()) as board:
        with pytest.raises(BoardError, match="did not answer with 1 words from 0xf0000004"):
            board.read_registers("tcp.rto_min")


def run(capsys, fake, *words):
    """Exit code, stdout and stderr of `trebuchet registers`."""
    with pytest.raises(SystemExit) as left:
        main(["registers", f"127.0.0.1:{fake.management}", *map(str, words)])
    out, err = capsys.readouterr()
    return left.value.code or 0, out, err


def test_the_command_lists_reads_and_writes(capsys, fake):
    code, out, err = run(capsys, fake)
    assert (code, err) == (0, "")
    assert out.splitlines()[1] == (
        "tcp.rto_min      16 bits  read, write       shortest time-out in ms"
    )
    assert run(capsys, fake, "tcp.rto_min") == (
        *(0, "tcp.rto_min  200  0xc8  shortest time-out in ms\n", ""),
    )
    assert run(capsys, fake, "tcp.rto_min", "0x12c")[1].startswith("tcp.rto_min  300  0x12c  ")
    assert fake.registers.words[RTO_MIN] == 300
    assert len(run(capsys, fake, "tcp.rto*")[1].splitlines()) == 2
    assert run(capsys, fake, "nic.mode")[1].splitlines()[1].split() == [".low", "0"]
    assert run(capsys, fake, "tcp.go", "1") == (0, "tcp.go: written\n", "")


def test_the_command_prints_json(capsys, fake):
    listed = json.loads(run(capsys, fake, "--json")[1])
    assert listed["map"] == fake.registers.map_hash
    assert listed["registers"]["nic.mode"]["fields"]["high"] == {
        **{"offset": 4, "width": 4, "help": ""},
    }
    fake.registers.words[BASE + 0x804] = 0x5A
    values = json.loads(run(capsys, fake, "nic.m*", "--json")[1])
    assert values["nic.mode"]["value"] == 0x5A
    assert values["nic.mode"]["fields"]["high"]["value"] == 5
    assert json.loads(run(capsys, fake, "tcp.rto_min", "7", "--json")[1])["tcp.rto_min"] == {
        **{"value": 7, "address": RTO_MIN, "access": "rw", "width": 16, "fields": {}},
        "help": "shortest time-out in ms",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tcp.rto_mim"], "there is no register 'tcp.rto_mim', did you mean 'tcp.rto_min'?"),
        (["tcp.segments", "1"], "register tcp.segments is read-only"),
        (["tcp.enable", "2"], "tcp.enable must be 0 to 1 (1 bits), not 2"),
        (["tcp.enable", "on"], "the value must be a number like 200, 0xc8 or 0b11001000, not 'on'"),
        (
            ["tcp.*", "1"],
            "there is no register 'tcp.*'; its registers are: enable, rto_min, rto_in",
        ),
        (["tcp.g*"], "the registers of 'tcp.g*' can only be written"),
        (["--map", "/nowhere"], "cannot read /nowhere: No such file or directory"),
    ],
)
def test_the_command_says_what_is_wrong(capsys, fake, words, said):
    code, out, err = run(capsys, fake, *words)
    assert (code, out) == (1, "")
    assert err.startswith(f"trebuchet: {said}")
    assert err.count("\n") == 1


def test_maps_of_examples_are_those_of_boards():
    """The fake has the words where the map says."""
    blocks = json.loads(json_map(REGIONS))["blocks"]
    assert blocks["nic"]["registers"]["seen"]["address"] == SEEN
    assert blocks["nic"]["registers"]["mac"]["address"] == MAC
