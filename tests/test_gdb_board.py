"""The firmware of the Verilated board under a debugger: our own client, and GDB where it is."""

import re
import shutil
import subprocess

import pytest
from e2e_clients import read_message
from gdb_client import GdbClient
from patience import wait_until
from sim_tops import needs_network
from trebuchet.client.smp import Message, MessageType, parse_reply
from trebuchet.models.status import Status
from trebuchet.sim.build import build
from trebuchet.sim.gdb.run import debug_files, debugged
from trebuchet.soc.build import build_sim

#: The board with a debugger takes minutes to compile.
pytestmark = [pytest.mark.nightly, needs_network]

GDB = next(
    (path for path in map(shutil.which, ("riscv64-unknown-elf-gdb", "gdb-multiarch")) if path), None
)
RA, SP, A0 = 1, 2, 10


@pytest.fixture(scope="module")
def files():
    return debug_files()


@pytest.fixture(scope="module")
def running(files):
    with debugged(build(files.source), files, ready="ready", timeout=240) as (board, server):
        yield board, server


@pytest.fixture
def board(running):
    return running[0]


@pytest.fixture
def gdb(running):
    with GdbClient(running[1].port) as client:
        yield client


@pytest.fixture(scope="module")
def symbols(files):
    """Address and size of each symbol of the firmware."""
    listing = subprocess.run(
        ["riscv64-unknown-elf-nm", "-S", files.elf], capture_output=True, text=True, check=True
    ).stdout
    rows = re.findall(r"^([0-9a-f]{8}) ([0-9a-f]{8}) \w (\S+)$", listing, re.M)
    return {name: (int(address, 16), int(size, 16)) for address, size, name in rows}


def section(elf, name):
    """Address and contents of a section of the firmware."""
    listing = subprocess.run(
        ["riscv64-unknown-elf-objdump", "-h", elf], capture_output=True, text=True, check=True
    ).stdout
    _, size, address, _, offset = re.search(
        rf"({re.escape(name)}) +(\w+) +(\w+) +(\w+) +(\w+)", listing
    ).groups()
    data = elf.read_bytes()[int(offset, 16) :][: int(size, 16)]
    return int(address, 16), data


def status_page(board):
    with board.connect(80) as peer:
        peer.sendall(b"GET /status HTTP/1.1\r\nHost: board\r\n\r\n")
        answer = b""
        while chunk := peer.recv(65536):
            answer += chunk
    return answer


def alive(board):
    return status_page(board).startswith(b"HTTP/1.1 200 ")


def stop_at(gdb, address):
    """Halt, and go on to ``address``."""
    gdb.ask("?")
    gdb.ok(f"Z0,{address:x},4")
    gdb.send("c")


def test_the_firmware_is_that_of_the_board_without(files):
    other = build_sim().folder.parent / "software" / "bios" / "bios.elf"
    assert section(files.elf, ".text") == section(other, ".text")


def test_halt_look_and_detach(board, gdb, files, symbols):
    assert gdb.ask("?") == "S05"
    registers = gdb.registers()
    text, code = section(files.elf, ".text")
    assert text <= registers[32] < text + len(code)
    assert 0x1000_0000 < registers[SP] <= 0x1000_2000
    assert registers[0] == 0
    assert gdb.registers() == registers
    assert gdb.read(text, 1024) == code[:1024]
    cycles = board.stats()["cycles"]
    board.sleep(0.2)
    assert board.stats()["cycles"] > cycles  # the board runs on
    assert gdb.registers() == registers  # the CPU does not
    gdb.ok("D")
    assert alive(board)


def test_a_breakpoint_at_a_function(board, gdb, symbols):
    address, _ = symbols["command_run"]
    stop_at(gdb, address)
    with board.connect(80) as peer:
        peer.sendall(Message(MessageType.COMMAND, b"version").pack())
        assert gdb.receive() == b"T05swbreak:;"
        registers = gdb.registers()
        assert registers[32] == address
        # Its arguments: the command, and its length.
        assert gdb.read(registers[A0], registers[A0 + 1]) == b"version"
        # Step, with the breakpoint out of the way as GDB does it.
        gdb.ok(f"z0,{address:x},4")
        assert gdb.ask("s") == "S05"
        assert gdb.pc() != address
        # Another path: the answer is that to another command.
        gdb.write(registers[A0], b"nowhere")
        # Hardware breakpoint at the caller.
        gdb.ok(f"Z1,{registers[RA]:x},4")
        assert gdb.ask("c") == "T05hwbreak:;"
        assert gdb.pc() == registers[RA]
        assert gdb.registers()[SP] == registers[SP]
        assert gdb.registers()[A0] == Status.UNKNOWN_COMMAND
        gdb.ok("D")
        kind, payload = read_message(peer)
    assert kind == MessageType.REPLY
    assert parse_reply(payload)[0] == Status.UNKNOWN_COMMAND
    assert alive(board)


def test_ctrl_c_and_memory(board, gdb, files):
    gdb.ask("?")
    gdb.send("c")
    board.sleep(0.1)
    gdb.raw(b"\x03")
    assert gdb.receive() == b"S02"
    data = bytes(range(256)) * 32
    base = 0x4040_0003
    began = board.simulation.seconds()
    for offset in range(0, len(data), 2048):
        gdb.write(base + offset, data[offset : offset + 2048])
    assert b"".join(gdb.read(base + k, 2048) for k in range(0, len(data), 2048)) == data
    assert board.simulation.seconds() - began < 30
    assert gdb.ask("m20000000,4") == "E0e"
    gdb.ok("D")
    assert alive(board)


def test_reset_stops_before_the_first_instruction(board, gdb, symbols):
    gdb.ask("?")
    assert "was reset" in gdb.monitor("reset")
    assert gdb.pc() == 0
    main, _ = symbols["main"]
    gdb.ok(f"Z0,{main:x},4")
    printed = board.uart_text().count("ready")
    assert gdb.ask("c") == "T05swbreak:;"
    assert gdb.pc() == main
    gdb.ok("D")
    wait_until(lambda: board.uart_text().count("ready") > printed, 120, "the board is not up")
    assert alive(board)


def test_a_debugger_that_vanishes_leaves_a_running_board(running, symbols):
    board, server = running
    with GdbClient(server.port) as gdb:
        gdb.ask("?")
        gdb.ok(f"Z0,{symbols['command_run'][0]:x},4")
        gdb.send("c")
        with GdbClient(server.port) as second:
            assert second.byte() == b""  # one debugger at a time
    assert alive(board)
    with GdbClient(server.port) as gdb:
        gdb.ask("?")
        gdb.send("k")
        assert gdb.byte() == b"+"
        assert gdb.byte() == b""
    assert alive(board)


def test_broken_packets_do_no_harm(board, gdb):
    gdb.send("?", checksum=0)
    assert gdb.byte() == b"-"
    gdb.raw(b"garbage")
    assert gdb.ask("?") == "S05"
    assert gdb.ask("m0," + "0" * 20000) == "E07"
    assert gdb.ask("vMustReplyEmpty") == ""
    gdb.ok("QStartNoAckMode")
    gdb.acknowledge = False
    assert gdb.ask("m0,4") != ""
    gdb.ok("D")
    assert alive(board)


@pytest.mark.skipif(
    GDB is None, reason="neither riscv64-unknown-elf-gdb nor gdb-multiarch is on PATH"
)
def test_gdb_itself(board, running, files, symbols, tmp_path):
    script = tmp_path / "script.gdb"
    script.write_text(
        f"""\
set pagination off
set remotetimeout 3600
target remote :{running[1].port}
monitor status
monitor reset
maintenance flush register-cache
info registers pc
break main
continue
backtrace
next
stepi
info registers ra sp pc mstatus
x/2i $pc
delete
break board_wait
continue
finish
delete
hbreak board_wait
continue
print/x *(unsigned int *)0x10000000
set var *(unsigned int *)0x40400000 = 0x12345678
print/x *(unsigned int *)0x40400000
compare-sections .text
detach
"""
    )
    done = subprocess.run(
        [GDB, "-batch", "-nx", "-x", script, files.elf], capture_output=True, text=True
    )
    text = done.stdout + done.stderr
    print(text)
    assert done.returncode == 0, text
    assert "halted at" in text
    assert re.search(r"^pc +0x0\b", text, re.M), text
    assert re.search(r"Breakpoint 1, .*main", text), text
    assert re.search(r"Breakpoint 2, .*board_wait", text), text
    assert re.search(r"Breakpoint 3, .*board_wait", text), text
    assert re.search(r"\$\d+ = 0x12345678", text), text
    assert "matched" in text
    assert "[Inferior 1 (process 1) detached]" in text or "detached" in text
    assert alive(board)
