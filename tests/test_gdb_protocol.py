"""The GDB server on a model of the CPU: every packet, wrong ones, and what the CPU is left with."""

import contextlib
import random
import socket
import struct
import threading
import xml.etree.ElementTree as ElementTree

import pytest
from gdb_client import GdbClient
from gdb_model import EBREAK, RAM, RESET, ROM, PluginModel
from trebuchet.sim.gdb import instructions as op
from trebuchet.sim.gdb.packets import MAX_PACKET, Event, PacketStream, escape, frame, unescape
from trebuchet.sim.gdb.server import GdbServer, Session, target_description
from trebuchet.sim.gdb.target import CSRS, MemoryMap, Target

#: count: x5 += 1; store it; jump back.
PROGRAM = [
    *op.load_immediate(6, RAM[0]),
    *op.load_immediate(5, 0),
    5 << 15 | 5 << 7 | 1 << 20 | 0x13,  # loop: addi x5, x5, 1
    op.store(5, 6, 0, 4),
    0xFF9F_F06F,  # j loop
]
LOOP = 16


@pytest.fixture
def model():
    made = PluginModel(PROGRAM)
    yield made
    made.close()


@pytest.fixture
def session(model):
    return Session(Target(model, MemoryMap((ROM, RAM), RESET)))


def ask(session, packet):
    return session.answer(packet.encode() if isinstance(packet, str) else packet)


def registers(session):
    data = bytes.fromhex(ask(session, "g").decode())
    return list(struct.unpack("<33I", data))


def test_attaching_halts_and_detaching_leaves_no_trace(session, model):
    before = list(model.x)
    assert ask(session, "?") == b"S05"
    assert registers(session) == [*before, model.pc]
    assert ask(session, f"Z0,{LOOP:x},4") == ask(session, f"Z1,{LOOP + 4:x},4") == b"OK"
    assert model._get(LOOP, 4) == struct.pack("<I", EBREAK)
    assert ask(session, f"m{RAM[0]:x},8") == b"00" * 8
    pc = model.pc
    model._go = lambda step: None  # so that what it goes on with can be seen
    assert ask(session, "D") == b"OK"
    assert (model.x, model.pc, model.halt) == (before, pc, False)
    assert model._get(LOOP, 4) == struct.pack("<I", PROGRAM[LOOP // 4])
    assert not model.comparators[0] & 1
    assert not model.ebreak_halts
    assert not model.rom_writable
    assert session.over


def test_a_breakpoint_stops_where_it_is_and_is_invisible(session, model):
    ask(session, "?")
    original = ask(session, "m0,1c")
    assert ask(session, f"Z0,{LOOP:x},4") == b"OK"
    assert ask(session, f"Z0,{LOOP:x},4") == b"OK"  # again is no error
    assert ask(session, "m0,1c") == original
    assert ask(session, f"m{LOOP + 1:x},2") == original[2 * LOOP + 2 : 2 * LOOP + 6]
    assert ask(session, "c") is None
    assert session.stopped(session.target.stopped()) == b"T05swbreak:;"
    assert registers(session)[32] == LOOP
    # What is written over a breakpoint is there when it is removed.
    new = struct.pack("<I", 5 << 15 | 5 << 7 | 2 << 20 | 0x13)
    assert ask(session, f"M{LOOP:x},4:{new.hex()}") == b"OK"
    assert model._get(LOOP, 4) == struct.pack("<I", EBREAK)
    assert ask(session, f"m{LOOP:x},4").decode() == new.hex()
    assert ask(session, f"z0,{LOOP:x},4") == b"OK"
    assert ask(session, "s") is None
    assert session.stopped(session.target.stopped()) == b"S05"
    assert registers(session)[5] == 2
    assert registers(session)[32] == LOOP + 4


def test_hardware_breakpoints_are_two(session):
    ask(session, "?")
    assert ask(session, f"Z1,{LOOP + 4:x},4") == b"OK"
    assert ask(session, "Z1,100,4") == b"OK"
    assert ask(session, "Z1,104,4") == b"E1c"
    assert ask(session, f"Z1,{LOOP + 4:x},4") == b"OK"
    assert ask(session, "z1,100,4") == b"OK"
    assert ask(session, "Z1,104,4") == b"OK"
    assert ask(session, "c") is None
    assert session.stopped(session.target.stopped()) == b"T05hwbreak:;"
    assert registers(session)[32] == LOOP + 4


def test_registers_are_given_back_and_x0_stays(session, model):
    ask(session, "?")
    values = [random.Random(1).getrandbits(32) for _ in range(32)] + [LOOP + 8]
    assert ask(session, b"G" + struct.pack("<33I", *values).hex().encode()) == b"OK"
    assert ask(session, "P5=78563412") == b"OK"
    assert ask(session, "p5") == b"78563412"
    values[0], values[5] = 0, 0x1234_5678
    assert registers(session) == values
    assert ask(session, "s") is None
    session.stopped(session.target.stopped())
    assert registers(session) == [*values[:32], LOOP]
    assert ask(session, f"p{65 + CSRS['mcause']:x}") == b"07000000"
    assert ask(session, f"P{65 + CSRS['mepc']:x}=00010000") == b"OK"
    assert model.csrs[CSRS["mepc"]] == 0x100


@pytest.mark.parametrize(("address", "length"), [(0, 1), (1, 2), (3, 6), (0x10, 64), (2, 0x3F1)])
def test_memory_of_any_alignment(session, model, address, length):
    ask(session, "?")
    data = random.Random(address).randbytes(length)
    for base in (RAM[0], ROM[0]):  # the debugger may write to the ROM
        packet = b"X%x,%x:" % (base + address, length) + escape(data)
        assert ask(session, packet) == b"OK"
        assert model._get(base + address, length) == data
        assert ask(session, f"m{base + address:x},{length:x}").decode() == data.hex()
    assert not model.rom_writable


def test_ctrl_c_and_going_away(session, model):
    assert session.interrupt() is None  # nobody waits
    ask(session, "?")
    assert ask(session, "c") is None
    assert session.interrupt() == b"S02"
    assert ask(session, "c") is None
    session.leave()
    assert not model.halt
    assert not model.ebreak_halts


def test_monitor_commands(session):
    def monitor(text):
        return bytes.fromhex(ask(session, f"qRcmd,{text.encode().hex()}").decode()).decode()

    ask(session, "?")
    ask(session, "Z0,14,4")
    assert monitor("status").splitlines() == [
        f"halted at {registers(session)[32]:#010x}",
        "breakpoint at 0x00000014",
    ]
    assert "monitor reset" in monitor("help")
    assert "There is no command 'rest'" in monitor("rest")
    ask(session, "P20=18000000")
    assert "was reset" in monitor("reset")
    assert registers(session)[32] == 0


def test_the_target_description(session):
    root = ElementTree.fromstring(target_description().decode())
    assert root.findtext("architecture") == "riscv:rv32"
    numbers = [int(reg.get("regnum")) for reg in root.iter("reg")]
    assert numbers[:33] == list(range(33))
    text, part = b"", b"m"
    while part[:1] == b"m":
        part = ask(session, b"qXfer:features:read:target.xml:%x,100" % len(text))
        text += unescape(part[1:])
    assert text == target_description()


@pytest.mark.parametrize(
    ("packet", "answer"),
    [
        ("", ""),
        ("vMustReplyEmpty", ""),
        ("!", ""),
        ("Z2,0,4", ""),
        ("Z0,10,2", "E16"),
        ("Z0,12,4", "E16"),
        ("Z0,10", "E16"),
        ("Z0,20000000,4", "E0e"),
        ("m20000000,4", "E0e"),
        ("m3fe,4", "E0e"),
        ("mfffffffe,4", "E0e"),
        ("m", "E16"),
        ("m0", "E16"),
        ("m0,", "E16"),
        ("m0,4,4", "E16"),
        ("mxyz,4", "E16"),
        ("m-1,4", "E16"),
        ("m100000000,4", "E16"),
        ("M0,4:0000", "E16"),
        ("M0,1:0g", "E16"),
        ("M0,2:0 00", "E16"),
        ("X0,4:abc", "E16"),
        ("M20000000,1:00", "E0e"),
        ("p21", "E16"),
        ("p", "E16"),
        ("P20=02000000", "E16"),
        ("P5=00", "E16"),
        ("P5", "E16"),
        ("G00", "E16"),
        ("c3", "E16"),
        ("qRcmd,0", "E16"),
        ("qXfer:features:read:other.xml:0,10", "E00"),
        ("qXfer:features:read:target.xml:zz,10", "E16"),
        ("qUnknown", ""),
        ("QUnknown", ""),
        ("qAttached", "1"),
    ],
)
def test_wrong_packets(session, model, packet, answer):
    ask(session, "?")
    before = (list(model.memory.items()), registers(session))
    assert ask(session, packet).decode() == answer
    assert (list(model.memory.items()), registers(session)) == before


def test_a_running_cpu_is_left_alone(session):
    for packet in ("g", "m0,4", "p20", "s", "c", "Z0,10,4", "P5=00000000", "qRcmd,7265736574"):
        assert ask(session, packet) == b"E10"


def test_random_packets_never_break_the_session(session):
    seed = 3
    rng = random.Random(seed)
    ask(session, "?")
    heads = [b"m", b"M", b"X", b"Z0,", b"z1,", b"P", b"p", b"G", b"q", b"qRcmd,", b"Q", b"v", b"H"]
    for _ in range(3000):
        tail = bytes(rng.choice(b"0123456789abcdef,:;=xyz \xff}") for _ in range(rng.randrange(12)))
        answer = ask(session, rng.choice(heads) + tail)
        assert answer is not None, f"seed {seed}: {tail!r}"
    assert len(registers(session)) == 33


# --- framing --------------------------------------------------------------------------------


@pytest.fixture
def stream():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield PacketStream(ours), theirs


def test_packets_in_pieces(stream):
    server, client = stream
    data = frame(b"m0,4") + b"\x03" + b"junk" + frame(escape(b"a#$}*b"))
    found = []
    for k in range(len(data)):
        client.sendall(data[k : k + 1])
        found += server.feed()
    assert found == [b"m0,4", Event.INTERRUPT, escape(b"a#$}*b")]
    assert unescape(found[-1]) == b"a#$}*b"
    assert client.recv(100) == b"++"


def test_a_wrong_sum_is_asked_for_again(stream):
    server, client = stream
    client.sendall(b"$g#00" + b"$g#zz" + frame(b"?"))
    assert server.feed() == [b"?"]
    assert client.recv(100) == b"--+"
    server.send(b"S05")
    client.sendall(b"-")
    assert server.feed() == []
    assert client.recv(100) == frame(b"S05") * 2


def test_any_number_of_wrong_sums_in_one_read(stream):
    server, client = stream
    count = 5000
    client.sendall(b"$x#00" * count + frame(b"?"))
    answer = bytearray()

    def listen():
        while len(answer) < count + 1:
            answer.extend(client.recv(65536))

    listener = threading.Thread(target=listen)
    listener.start()
    found = []
    while not found:
        found += server.feed()
    listener.join()
    assert found == [b"?"]
    assert answer == b"-" * count + b"+"


def test_an_oversized_packet_is_left_out(stream):
    server, client = stream
    huge = frame(b"M0,10000:" + b"00" * (8 * MAX_PACKET)) + frame(b"?")
    sender = threading.Thread(target=client.sendall, args=(huge,))
    sender.start()
    found = []
    while len(found) < 2:
        found += server.feed()
        assert len(server._buffer) < 2 * MAX_PACKET
    sender.join()
    assert found == [Event.TOO_LONG, b"?"]
    client.close()
    assert server.feed() == [Event.CLOSED]


@pytest.fixture
def server(model, monkeypatch):
    """The server in its thread, with the model in the place of the harness's socket."""
    name = "trebuchet.sim.gdb.server"
    monkeypatch.setattr(f"{name}.DebugPort", lambda path, simulation: contextlib.nullcontext(model))
    memory_map = MemoryMap((ROM, RAM), RESET)
    monkeypatch.setattr(f"{name}.MemoryMap.load", lambda path: memory_map)
    with GdbServer("no socket", "no map") as made:
        yield made


@pytest.mark.parametrize("method", ["answer", "leave"])
def test_the_server_survives_an_error_of_one_connection(server, monkeypatch, caplog, method):
    def broken(self, *_):
        raise RecursionError("an error that nobody thought of")

    with monkeypatch.context() as patch:
        patch.setattr(Session, method, broken)
        with GdbClient(server.port) as client:
            client.send("?" if method == "answer" else "k")
            while client.byte():
                pass  # until it hangs up
    assert "an error that nobody thought of" in caplog.text
    with GdbClient(server.port) as client:
        assert client.ask("?") == "S05"
        client.ok("D")
