"""The GDB server and VexRiscv's debug plugin, on a computer of CPU and memories only."""

import random
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from gdb_client import GdbClient
from gdb_mini import mini, running
from patience import wait_until

pytestmark = pytest.mark.slow

GDBS = ("riscv64-unknown-elf-gdb", "gdb-multiarch")
GDB = next((path for path in map(shutil.which, GDBS) if path), None)
RAM, S1, A0 = 0x1000_0000, 9, 10


@pytest.fixture(scope="module")
def computer(tmp_path_factory):
    return mini(tmp_path_factory.mktemp("mini"))


@pytest.fixture(scope="module")
def server(computer):
    with tempfile.TemporaryDirectory() as short, running(computer, Path(short)) as made:
        yield made


@pytest.fixture
def gdb(server):
    with GdbClient(server.port) as client:
        assert client.ask("?") == "S05"
        yield client


@pytest.fixture(scope="module")
def symbols(computer):
    command = ["riscv64-unknown-elf-nm", computer.elf]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: int(address, 16) for address, _, name in map(str.split, listing.splitlines())}


def number(gdb):
    """What the program has counted to, from memory."""
    return int.from_bytes(gdb.read(RAM, 4), "little")


def test_steps_follow_the_program(gdb, symbols):
    gdb.ok(f"Z1,{symbols['loop']:x},4")
    assert gdb.ask("c") == "T05hwbreak:;"
    gdb.ok(f"z1,{symbols['loop']:x},4")
    count = gdb.registers()[S1]
    loop, twice = symbols["loop"], symbols["twice"]
    for pc in (loop + 4, loop + 8, twice, twice + 4, twice + 8, loop + 12, loop, loop + 4):
        assert gdb.ask("s") == "S05"
        assert gdb.pc() == pc
    registers = gdb.registers()
    assert registers[S1] == count + 2
    assert registers[A0] == 2 * (count + 1)
    assert number(gdb) == count + 1


def test_breakpoints_in_the_rom(gdb, symbols):
    twice = symbols["twice"]
    before = gdb.read(0, 64)
    gdb.ok(f"Z0,{twice:x},4")
    assert gdb.ask("c") == "T05swbreak:;"
    first = gdb.registers()
    assert first[32] == twice
    assert gdb.read(0, 64) == before
    gdb.ok(f"z0,{twice:x},4")
    gdb.ask("s")
    gdb.ok(f"Z0,{twice:x},4")
    assert gdb.ask("c") == "T05swbreak:;"
    assert gdb.registers()[S1] == first[S1] + 1
    gdb.ok(f"z0,{twice:x},4")
    assert gdb.read(0, 64) == before


def test_the_rom_is_read_only_for_the_program(gdb, symbols):
    """The program's store, with a ROM address in s0; then the debugger's."""
    store = symbols["loop"] + 4
    gdb.ok(f"Z1,{store:x},4")
    assert gdb.ask("c") == "T05hwbreak:;"
    gdb.ok(f"z1,{store:x},4")
    before = gdb.read(0x800, 4)
    gdb.ok("P8=00080000")
    gdb.ask("s")
    assert gdb.pc() == store + 4
    assert gdb.read(0x800, 4) == before
    gdb.write(0x800, b"abcd")
    assert gdb.read(0x800, 4) == b"abcd"
    gdb.write(0x800, before)
    gdb.ok("P8=00000010")


def test_registers_and_memory_are_written(gdb):
    seed = 5
    rng = random.Random(seed)
    data = rng.randbytes(1500)
    gdb.write(RAM + 0x101, data)
    assert gdb.read(RAM + 0x101, 1500) == data, f"seed {seed}"
    gdb.ok("P9=00000100")

    def counted():
        gdb.send("c")
        time.sleep(0.1)
        gdb.raw(b"\x03")
        assert gdb.receive() == b"S02"
        return gdb.registers()[S1] > 0x1_0000

    wait_until(counted, 20, "it does not count from the number written")
    assert number(gdb) > 0x1_0000


def test_reset(gdb):
    assert "was reset" in gdb.monitor("reset")
    assert gdb.pc() == 0
    for pc in (4, 8):
        gdb.ask("s")
        assert gdb.pc() == pc
    assert gdb.registers()[2] == RAM + 0x400


def test_a_halted_cpu_is_seen_by_the_board(gdb, computer):
    """For watchdogs: `o_halted` of the CPU."""
    registers = re.search(r'"awake": {"addr": (\d+)', computer.csr_json.read_text())
    awake = int(registers[1])

    def cycles():
        return int.from_bytes(gdb.read(awake, 4), "little")

    before = cycles()
    time.sleep(0.1)
    gdb.registers()
    assert cycles() == before
    gdb.ask("s")
    assert before < cycles() < before + 200


def test_detaching_lets_it_go_on(server):
    with GdbClient(server.port) as gdb:
        gdb.ask("?")
        gdb.ok("Z0,0,4")
        gdb.write(RAM, bytes(4))
        gdb.ok("D")

    def counted():
        with GdbClient(server.port) as gdb:
            gdb.ask("?")
            assert gdb.read(0, 4) != b"\x73\x00\x10\x00"
            return number(gdb)

    wait_until(counted, 20, "it does not go on")


SCRIPT = """\
set pagination off
set remotetimeout 3600
target remote :{port}
monitor status
x/3i $pc
break twice
continue
continue
stepi
stepi
print $a0 == 2 * $s1
delete
hbreak loop
continue
set var $a0 = 5
print $a0
set var *(int *)0x10000100 = 0x1234
print/x *(int *)0x10000100
print/x $mstatus
load
compare-sections .text
monitor reset
maintenance flush register-cache
info registers pc
delete
tbreak twice
continue
finish
detach
"""


@pytest.mark.skipif(GDB is None, reason=f"none of {', '.join(GDBS)} is on PATH")
def test_gdb_itself(computer, server, tmp_path):
    script = tmp_path / "script.gdb"
    script.write_text(SCRIPT.format(port=server.port))
    command = [GDB, "-batch", "-nx", "-x", script, computer.elf]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    for line in (
        r"halted at 0x000000\w\w",
        r"Breakpoint 1, twice \(\) at .*gdb_mini.S:\d+",
        r"\$1 = 1",
        r"Hardware assisted breakpoint 2 at .*",
        r"Breakpoint 2, loop \(\) at .*",
        r"\$2 = 5",
        r"\$3 = 0x1234",
        r"Loading section .text, size 0x\w+ lma 0x0",
        r"Section .text, range .*: matched\.",
        r"The board was reset; .*",
        r"pc +0x0\b.*",
        r"Temporary breakpoint 3, twice \(\) at .*",
        r"loop \(\) at .*",
        r"\[Inferior 1 \(Remote target\) detached\]",
    ):
        assert re.search(f"^ *{line}$", text, re.M), f"{line}\n{text}"
