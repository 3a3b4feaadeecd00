"""The configuration block: the firmware's parser against the host's packer, and torn writes."""

import ctypes
import random

import pytest
from firmware_lib import FlashPort, Piece, build
from streams import seeds
from trebuchet.models import config_block
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.status import Status

BASE = 0xFE000
HEADER = 16
TEXT = "ip=10.0.0.77\nmac=02:00:00:00:00:77\nname=box\npeer3=02:00:00:00:00:03,10.0.0.3,1,200,1\n"


class Block(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_char * 4),
        ("format", ctypes.c_uint8),
        ("zero", ctypes.c_uint8),
        ("length", ctypes.c_uint16),
        ("sequence", ctypes.c_uint32),
        ("checksum", ctypes.c_uint32),
        ("text", ctypes.c_uint8 * config_block.MAX_TEXT),
    ]


class Config(ctypes.Structure):
    _fields_ = [("block", Block), ("copy", ctypes.c_int8), ("status", ctypes.c_uint8 * 2)]

    def text(self):
        return bytes(self.block.text[: self.block.length]).decode()


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    names = ("config.c", "config_keys.c", "values.c", "crc32.c", "flash.c")
    library = build(root, tmp_path_factory.mktemp("config"), *names)
    for name in ("check", "load", "save", "erase", "set", "unset"):
        getattr(library, f"config_{name}").restype = ctypes.c_uint8
    for name in ("find", "unsigned", "allows", "ip", "mac", "wrong_line", "peer"):
        getattr(library, f"config_{name}").restype = ctypes.c_bool
    library.config_set.argtypes = [ctypes.POINTER(Config), Piece, Piece]
    library.config_unset.argtypes = [ctypes.POINTER(Config), Piece]
    library.config_allows.argtypes = [Piece, Piece]
    return library


@pytest.fixture
def flash(lib):
    port = FlashPort(lib)
    yield port.flash
    assert not port.flash.selected


def _check(lib, data):
    buffer = (ctypes.c_uint8 * max(1, len(data))).from_buffer_copy(data or b"\0")
    return lib.config_check(buffer, ctypes.c_size_t(len(data)))


def _load(lib):
    config = Config()
    return lib.config_load(ctypes.byref(config), BASE), config


def _set(lib, config, key, value):
    return lib.config_set(ctypes.byref(config), Piece.of(key), Piece.of(value))


def test_what_the_host_packs_is_good(lib):
    block = config_block.pack(TEXT, 7)
    assert _check(lib, block) == Status.OK
    assert _check(lib, block + b"behind") == Status.OK
    assert config_block.unpack(block) == config_block.ConfigBlock(TEXT, 7)


def test_every_truncation_is_told(lib):
    block = config_block.pack(TEXT)
    assert {_check(lib, block[:n]) for n in range(len(block))} == {Status.TRUNCATED}
    for n in range(len(block)):
        with pytest.raises(TrebuchetError, match="TRUNCATED$"):
            config_block.unpack(block[:n])


def test_every_flipped_bit_is_told_with_the_same_status_by_firmware_and_host(lib):
    block = config_block.pack(TEXT)
    seen = set()
    for bit in range(8 * len(block)):
        damaged = bytearray(block)
        damaged[bit // 8] ^= 1 << bit % 8
        status = Status(_check(lib, bytes(damaged)))
        with pytest.raises(TrebuchetError, match=rf"{status.name}$"):
            config_block.unpack(bytes(damaged))
        seen.add(status)
    assert seen == {
        Status.NO_CONFIG,
        Status.BAD_DATA,
        Status.TRUNCATED,
        Status.BAD_CHECKSUM,
    }


VALUES = [
    *(
        "",
        "0",
        "1",
        "2",
        "01",
        "65535",
        "99",
        "100",
        "1999",
        "2000",
        "65536",
        "4294967296",
        "9" * 30,
    ),
    *("15", "16", "127", "128", "60000", "60001", "131071", "131072", "4194303", "4194304"),
    *("10.0.0.1", "0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "255.255.255.0"),
    *("255.0.255.0", "128.0.0.0", "10.0.0", "10.0.0.1.1", "10.0.0.256", "10.0.0.01", " 10.0.0.1"),
    *("02:00:00:00:00:01", "02:00:00:00:0A:fF", "01:00:00:00:00:01", "00:00:00:00:00:00"),
    *("02:00:00:00:00:0", "02-00-00-00-00-01", "02:00:00:00:00:01:", "2:00:00:00:00:001"),
    *("10.0.0.1:80", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:", ":80", "10.0.0.1:80:1"),
    *("error", "warn", "info", "debug", "INFO", "on", "off", "On", "box", "box-1", "-box", "box-"),
    *("a" * 31, "a" * 32, "b_x", "02:00:00:00:00:03,10.0.0.3,1,200,1"),
    *("02:00:00:00:00:03,10.0.0.3,16,200,1", "02:00:00:00:00:03,10.0.0.3,1,32768,0"),
    *("02:00:00:00:00:03,10.0.0.3,1,200,2", "02:00:00:00:00:03,10.0.0.3,1,200"),
    "02:00:00:00:00:03,10.0.0.3,1,200,1,",
]


NO_KEYS = ("peer0", "peer16", "peer", "tcp_", "ipx", "i", "")


@pytest.mark.parametrize("key", [*config_block.FORMS, *NO_KEYS])
def test_firmware_and_host_allow_the_same_values(lib, key):
    form = config_block.FORMS.get(key)
    allowed = [v for v in VALUES if form is not None and form[1](v)]
    found = [v for v in VALUES if lib.config_allows(Piece.of(key.encode()), Piece.of(v.encode()))]
    assert found == allowed
    assert bool(found) == (form is not None)


def test_a_blank_flash_has_no_block(lib, flash):
    status, config = _load(lib)
    assert status == Status.NO_CONFIG
    assert (config.copy, config.text(), list(config.status)) == (-1, "", [Status.NO_CONFIG] * 2)


def test_saves_take_turns_and_the_newest_counts(lib, flash):
    _, config = _load(lib)
    for number in range(1, 6):
        assert _set(lib, config, b"ip", b"10.0.0.%d" % number) == Status.OK
        assert lib.config_save(ctypes.byref(config), BASE) == Status.OK
        status, found = _load(lib)
        assert status == Status.OK
        assert found.text() == f"ip=10.0.0.{number}\n"
        assert (found.copy, found.block.sequence) == (1 - number % 2, number) or number % 2
        assert found.copy == config.copy


def test_sequence_numbers_wrap(lib, flash):
    for copy, sequence in ((0, 0xFFFF_FFFF), (1, 0)):
        block = config_block.pack(f"ip=10.0.0.{copy + 1}\n", sequence)
        flash.data[BASE + copy * config_block.STEP :][: len(block)] = block
        start = BASE + copy * config_block.STEP
        flash.data[start : start + len(block)] = block
    _, config = _load(lib)
    assert config.text() == "ip=10.0.0.2\n"


@pytest.mark.parametrize("newest", [0, 1])
def test_a_damaged_copy_gives_way_to_the_other(lib, flash, newest):
    for copy in (0, 1):
        block = config_block.pack(f"ip=10.0.0.{copy + 1}\n", 5 + (copy == newest))
        start = BASE + copy * config_block.STEP
        flash.data[start : start + len(block)] = block
    flash.data[BASE + newest * config_block.STEP + HEADER] ^= 1
    status, config = _load(lib)
    assert status == Status.OK
    assert config.text() == f"ip=10.0.0.{2 - newest}\n"
    assert config.status[newest] == Status.BAD_CHECKSUM


def test_a_write_torn_anywhere_keeps_the_old_block(lib, flash):
    _, config = _load(lib)
    _set(lib, config, b"ip", b"10.0.0.1")
    assert lib.config_save(ctypes.byref(config), BASE) == Status.OK
    before, whole = bytes(flash.data), HEADER + len("ip=10.0.0.200\n")
    for power in range(whole + 1):
        flash.data[:] = before
        flash.power = power
        _, config = _load(lib)
        _set(lib, config, b"ip", b"10.0.0.200")
        saved = lib.config_save(ctypes.byref(config), BASE)
        flash.power = None
        status, found = _load(lib)
        assert status == Status.OK
        assert saved == (Status.OK if power == whole else Status.FLASH_ERROR)
        assert found.text() == ("ip=10.0.0.200\n" if power == whole else "ip=10.0.0.1\n")


def test_a_protected_flash_is_told(lib, flash):
    flash.protected = True
    _, config = _load(lib)
    _set(lib, config, b"dhcp", b"1")
    assert lib.config_save(ctypes.byref(config), BASE) == Status.FLASH_ERROR
    flash.protected = False
    assert lib.config_save(ctypes.byref(config), BASE) == Status.OK
    flash.protected = True
    assert lib.config_erase(ctypes.byref(config), BASE) == Status.FLASH_ERROR


def test_erase_leaves_none(lib, flash):
    _, config = _load(lib)
    for _ in range(2):
        _set(lib, config, b"dhcp", b"1")
        lib.config_save(ctypes.byref(config), BASE)
    assert lib.config_erase(ctypes.byref(config), BASE) == Status.OK
    assert _load(lib)[0] == Status.NO_CONFIG
    assert lib.config_save(ctypes.byref(config), BASE) == Status.OK
    assert _load(lib)[1].text() == "dhcp=1\n"


@pytest.mark.parametrize("newest", [0, 1])
def test_erase_that_is_cut_off_never_brings_old_settings_back(lib, flash, newest):
    _, config = _load(lib)
    for number in range(2 + newest):
        _set(lib, config, b"ip", b"10.0.0.%d" % (number + 1))
        lib.config_save(ctypes.byref(config), BASE)
    assert config.copy == (1 + newest) % 2
    before, newer = bytes(flash.data), config.text()
    programs = []
    for power in range(100):
        flash.data[:] = before
        flash.power = power
        done = lib.config_erase(ctypes.byref(config), BASE) == Status.OK
        flash.power = None
        status, found = _load(lib)
        assert status == Status.NO_CONFIG or found.text() == newer
        programs.append(status)
        if done:
            break
    assert done
    assert {Status.OK, Status.NO_CONFIG} <= set(programs)


def _of(lib, text):
    config = Config()
    lib.config_clear(ctypes.byref(config))
    config.block.text[: len(text)] = list(text)
    config.block.length = len(text)
    return config


@pytest.mark.parametrize(
    "line", [b"watchdog_ms=5", b"dhcp=7", b"role=maybe", b"netmask=1.2.3.4", b"gateway=127.0.0.1"]
)
def test_a_value_that_is_not_allowed_is_not_found(lib, line):
    key = line.partition(b"=")[0]
    value, number = Piece(), ctypes.c_uint32(77)
    config = _of(lib, b"name=box\n" + line + b"\n")
    assert not lib.config_find(ctypes.byref(config), key, ctypes.byref(value))
    assert not lib.config_unsigned(ctypes.byref(config), key, ctypes.byref(number))
    assert number.value == 77
    assert lib.config_find(ctypes.byref(config), b"name", ctypes.byref(value))
    assert value.text() == b"box"


def test_a_key_that_is_there_twice_is_set_and_unset_as_one(lib):
    config = _of(lib, b"ip=10.0.0.1\nname=box\nip=10.0.0.2\n")
    assert _set(lib, config, b"ip", b"10.0.0.3") == Status.OK
    assert config.text() == "name=box\nip=10.0.0.3\n"
    config = _of(lib, b"ip=10.0.0.1\nip=10.0.0.2")
    assert lib.config_unset(ctypes.byref(config), Piece.of(b"ip")) == Status.OK
    assert config.text() == ""


@seeds(3)
def test_set_and_unset_are_those_of_a_dictionary(lib, seed):
    rng = random.Random(seed)
    config, model = Config(), {}
    lib.config_clear(ctypes.byref(config))
    keys = ["ip", "mac", "dhcp", "gateway", "log", "name", "peer1", "peer15"]
    for _ in range(300):
        key = rng.choice(keys)
        if rng.random() < 0.3:
            status = lib.config_unset(ctypes.byref(config), Piece.of(key.encode()))
            assert status == (Status.OK if key in model else Status.BAD_ARGUMENT)
            model.pop(key, None)
        else:
            value = rng.choice(VALUES)
            status = _set(lib, config, key.encode(), value.encode())
            assert status == (
                Status.OK if config_block.FORMS[key][1](value) else Status.BAD_ARGUMENT
            )
            if status == Status.OK:
                model.pop(key, None)
                model[key] = value
        assert config.text() == "".join(f"{k}={v}\n" for k, v in model.items())
        assert config_block.check_text(config.text()) == config.text()


def test_a_full_block_takes_no_more(lib):
    config = Config()
    lib.config_clear(ctypes.byref(config))
    filler = b"x" * (config_block.MAX_TEXT - 9) + b"\n"
    config.block.text[: len(filler)] = list(filler)
    config.block.length = len(filler)
    assert _set(lib, config, b"log", b"error") == Status.NO_ROOM
    assert config.block.length == len(filler)
    assert _set(lib, config, b"log", b"warn") == Status.NO_ROOM
    assert _set(lib, config, b"role", b"on") == Status.OK
    assert config.block.length == config_block.MAX_TEXT
    assert _set(lib, config, b"role", b"off") == Status.NO_ROOM
    assert _set(lib, config, b"role", b"on") == Status.OK


def test_a_line_without_its_end_is_a_line(lib):
    config = Config()
    lib.config_clear(ctypes.byref(config))
    text = b"ip=10.0.0.1"
    config.block.text[: len(text)] = list(text)
    config.block.length = len(text)
    assert _set(lib, config, b"dhcp", b"0") == Status.OK
    assert config.text() == "ip=10.0.0.1\ndhcp=0\n"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (b"", None),
        (b"ip=10.0.0.1\n", None),
        (b"ip=10.0.0.1\nip=1\n", b"ip=1"),
        (b"nothing\n", b"nothing"),
        (b"\n", b""),
        (b"later=1", b"later=1"),
    ],
)
def test_lines_that_are_not_used_are_told(lib, text, wrong):
    config, line = Config(), Piece()
    lib.config_clear(ctypes.byref(config))
    config.block.text[: len(text)] = list(text)
    config.block.length = len(text)
    assert lib.config_wrong_line(ctypes.byref(config), ctypes.byref(line)) == (wrong is not None)
    if wrong is not None:
        assert line.text() == wrong
