"""The firmware's command `lease`, compiled for this machine, at the framer's registers."""

import ctypes
import subprocess

import pytest
from firmware_lib import FLAGS, SANITIZE
from manage_lib import SMP_BASE, bus_functions, write_headers
from streams import make_rng
from trebuchet.cores.services.smp_registers import SMP_BLOCK
from trebuchet.models.epoch import is_newer
from trebuchet.models.status import Status
from trebuchet.soc.csr_export import register_offsets

AT = {name: SMP_BASE + offset for name, offset in register_offsets(SMP_BLOCK).items()}
SOURCES = ("lease", "command", "text")


def build(root, folder, regions):
    write_headers(folder, "", regions)
    sources = [root / "tests" / "lease_host.c"]
    sources += [root / "firmware" / f"{name}.c" for name in SOURCES]
    include = ["-I", folder, "-I", root / "firmware"]
    path = folder / "lease.so"
    command = ["gcc", *FLAGS, *SANITIZE, "-fPIC", "-shared", *include, "-o", path, *sources]
    subprocess.run(command, check=True)
    lib = ctypes.CDLL(str(path))
    lib.lease_run.restype = ctypes.c_char_p
    return lib


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    return build(root, tmp_path_factory.mktemp("lease"), [(SMP_BLOCK, SMP_BASE)])


class Board:
    def __init__(self, lib, **registers):
        self.lib = lib
        self.words = {AT[name]: value for name, value in registers.items()}
        self.written = []
        self.functions = lambda address: self.words.get(address, 0), self.write

    def write(self, address, value):
        self.words[address] = value
        self.written.append(next(name for name, at in AT.items() if at == address))

    def run(self, line):
        bus_functions(self.lib, *self.functions)
        status = ctypes.c_uint8()
        said = self.lib.lease_run(line, len(line), ctypes.byref(status)).decode()
        return Status(status.value), said

    def refuses(self, epoch):
        bus_functions(self.lib, *self.functions)
        return self.lib.lease_refuses(epoch) & 0xFF != 0


def test_a_lease_is_shown_and_raised(lib):
    board = Board(lib, stale=3)
    assert board.run(b"lease") == (Status.OK, "lease 0, guard off, 3 stale messages\n")
    assert board.run(b"lease 17") == (Status.OK, "lease 17, guard on, 3 stale messages\n")
    assert board.written == ["lease", "guard"], "never the guard with the epoch before"
    assert board.run(b"lease off")[1] == "lease 17, guard off, 3 stale messages\n"
    assert board.run(b"lease on")[1] == "lease 17, guard on, 3 stale messages\n"
    assert board.run(b"lease 0x12")[1] == "lease 18, guard on, 3 stale messages\n"


def test_an_epoch_only_increases(lib):
    board = Board(lib, lease=17, guard=1)
    for old in (17, 16, 1, 17 + (1 << 15)):
        status, said = board.run(b"lease %d" % old)
        assert status == Status.STALE
        assert said == f"error: STALE: {old} is not newer than the board's epoch 17\n"
    assert board.written == []
    assert board.run(b"lease 32784")[0] == Status.OK  # 17 + 32767


@pytest.mark.parametrize("word", [b"0", b"65536", b"x", b"-1", b"ON"])
def test_what_is_no_epoch(lib, word):
    board = Board(lib, lease=17)
    status, said = board.run(b"lease " + word)
    assert status == Status.BAD_ARGUMENT
    assert said == "error: BAD_ARGUMENT: the form is: lease [EPOCH|on|off]\n"
    assert board.run(b"lease 18 on")[0] == Status.BAD_ARGUMENT
    assert board.written == []


def test_the_arithmetic_is_that_of_the_model(lib):
    rng = make_rng(1, "epochs")
    edges = (0, 1, 2, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF)
    pairs = [(a, b) for a in edges for b in edges]
    pairs += [(rng.randrange(1 << 16), rng.randrange(1 << 16)) for _ in range(2000)]
    for epoch, other in pairs:
        assert (lib.lease_is_newer(epoch, other) & 0xFF != 0) == is_newer(epoch, other)


def test_what_the_guard_refuses(lib):
    board = Board(lib, lease=17)
    assert not any(board.refuses(epoch) for epoch in (0, 17, 18))
    lib.lease_guard(True)
    assert [board.refuses(epoch) for epoch in (0, 17, 18)] == [True, False, True]
    fresh = Board(lib, guard=1)
    assert all(fresh.refuses(epoch) for epoch in (0, 1))


def test_a_board_without_smp(root, tmp_path):
    lib = build(root, tmp_path, [])
    board = Board(lib)
    assert board.run(b"lease 1")[0] == Status.NOT_BUILT_IN
    assert not board.refuses(0)
    assert lib.lease_epoch() == 0
