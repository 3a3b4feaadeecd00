"""The firmware's set-up of LTL, compiled for this machine, with registers that record."""

import ctypes
import ipaddress
import json
import random
import shutil
import struct
import subprocess

import pytest
from firmware_host import generated
from firmware_lib import FLAGS, PORT, SANITIZE
from scapy.layers.inet import IP as Ip
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from streams import make_rng, seeds
from trebuchet.cores.csr import Register, RegisterBlock
from trebuchet.cores.ltl.registers import LTL_BLOCK
from trebuchet.sim.fleet.firmware import peers_text
from trebuchet.sim.fleet.topology import parse, uniform
from trebuchet.soc.csr_export import c_header, json_map
from trebuchet.soc.peers import Peer, peers_header

#: The firmware's files under test, and what they need.
PARTS = ("ltl", "greeting", "packet", "network", "text", "config", "config_keys")
PARTS += ("values", "crc32", "flash")
#: Peers that the gateware has room for; the topologies use fewer.
ROOM = 15
CLUSTER = RegisterBlock("cluster", (Register("enable", "rw", ROOM + 1, "", 1),))
REGIONS = [(LTL_BLOCK, 0xF000_1000), (CLUSTER, 0xF000_2000)]
SOC_H = f"""\
#define TREBUCHET_IP 1
#define TREBUCHET_MAC_HIGH 2
#define TREBUCHET_MAC_LOW 3
#define TREBUCHET_LTL_PEERS {ROOM}
"""
#: The bus, the frame port, addresses, the board's timer, and the console.
FAKES = """
#include <stdio.h>
#include <string.h>
#include "board.h"
#include "ip.h"
#include "log.h"
#include "nic.h"
#include "serial.h"
#include "settings.h"
static struct config config;
struct config *settings(void) { return &config; }
void configure(const char *text)
{
    config.block.length = (uint16_t)strlen(text);
    memcpy(config.block.text, text, config.block.length);
}
static uint8_t own_mac[6];
static uint32_t own_ip, now_ms;
static bool listens, busy;
void be(const uint8_t *mac, uint32_t ip)
{
    memcpy(own_mac, mac, 6);
    own_ip = ip;
}
void set_time(uint32_t ms) { now_ms = ms; }
void set_busy(bool value) { busy = value; }
bool does_listen(void) { return listens; }
void ip_mac(uint8_t mac[6]) { memcpy(mac, own_mac, 6); }
uint32_t ip_current(void) { return own_ip; }
void ip_listen(void) { listens = true; }
uint32_t board_uptime_ms(void) { return now_ms; }
bool nic_busy(void) { return busy; }
void (*on_send)(const uint8_t *, uint32_t);
void nic_send(const uint32_t *frame, size_t length)
{
    on_send((const uint8_t *)frame, (uint32_t)length);
}
uint32_t (*on_read)(uint32_t);
void (*on_write)(uint32_t, uint32_t);
void (*on_wake)(uint32_t);
uint32_t fake_read(uint32_t address) { return on_read(address); }
void fake_write(uint32_t address, uint32_t value) { on_write(address, value); }
void board_wake_every(uint32_t milliseconds) { on_wake(milliseconds); }
void serial_string(const char *string) { fputs(string, stdout); }
void log_write(enum log_level level, const char *part, const char *text)
{
    (void)level;
    printf("%s: %s\\n", part, text);
}
"""
READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)
WAKE = ctypes.CFUNCTYPE(None, ctypes.c_uint32)
SEND = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint8), ctypes.c_uint32)
#: What our board is in tests of one board.
MAC, IP = 0x0200_0000_0001, 0x0A00_0002

THREE = (
    Peer(mac=0x0200_0000_0A0B, ip=0x0A00_0003, theirs=3, timeout_us=1000, called=True),
    Peer(mac=0xF6E5_D4C3_B2A1, ip=0xC0A8_01FE, theirs=1, timeout_us=32767, called=False),
    Peer(mac=0x0200_8000_0001, ip=0x0A00_0005, theirs=2, timeout_us=50, called=True),
)


def registers_header(regions):
    """The generated header, but its words are read and written by :data:`FAKES`."""
    text = c_header(regions)
    for body, call in (
        ("return *(volatile uint32_t *)(uintptr_t)address;", "return fake_read(address);"),
        ("*(volatile uint32_t *)(uintptr_t)address = value;", "fake_write(address, value);"),
    ):
        assert text.count(body) == 1
        text = text.replace(body, call)
    fakes = "uint32_t fake_read(uint32_t);\nvoid fake_write(uint32_t, uint32_t);\n"
    return text.replace("#include <stdint.h>\n", f"#include <stdint.h>\n{fakes}", 1)


@pytest.fixture
def build(root, tmp_path):
    """Compiles the firmware's part for a table of peers: ``build(header, regions)``.

    Each is loaded from a file of its own, so that none has another's variables.
    """
    made = {}

    def compiled(header, regions=REGIONS):
        known = made.get((header, str(regions)))
        if known is not None:
            path = known.with_name(f"copy{len(list(known.parent.iterdir()))}.so")
            shutil.copy(known, path)
            return ctypes.CDLL(str(path))
        folder = tmp_path / f"build{len(list(tmp_path.iterdir()))}"
        (folder / "generated").mkdir(parents=True)
        (folder / "generated" / "trebuchet_regs.h").write_text(registers_header(regions))
        (folder / "generated" / "trebuchet_peers.h").write_text(header)
        (folder / "generated" / "soc.h").write_text(SOC_H)
        (folder / "fakes.c").write_text(FAKES)
        (folder / "port.c").write_text(PORT)
        sources = [root / "firmware" / f"{name}.c" for name in PARTS] + [folder / "port.c"]
        flags = [*FLAGS, *SANITIZE, "-fPIC", "-shared", f"-I{generated(folder)}"]
        flags += [f"-I{root / 'firmware'}"]
        path = folder / "ltl.so"
        command = ["gcc", *flags, "-o", path, folder / "fakes.c", *sources]
        subprocess.run(command, check=True, timeout=60)
        made[header, str(regions)] = path
        return ctypes.CDLL(str(path))

    return compiled


class Board:
    """The registers: every write in order, the engine's tables, and how often firmware looked."""

    def __init__(self, library, seed=0, mac=MAC, ip=IP):
        self.library, self.rng = library, random.Random(seed)
        self.mac, self.ip, self.sent = mac, ip, []
        library.be(mac.to_bytes(6, "big"), ip)
        self.names = {}
        for block, base in REGIONS:
            for name, r in json.loads(json_map([(block, base)]))["blocks"][block.name][
                "registers"
            ].items():
                self.names[r["address"]] = f"{block.name}.{name}"
                if r["width"] > 32:
                    self.names[r["address"] + 4] = f"{block.name}.{name}_high"
        self.values = {f"{b.name}.{r.name}": r.reset for b, _ in REGIONS for r in b.registers}
        self.writes, self.wakes, self.errors = [], [], []
        self.busy, self.looks, self.failures = 0, 0, []
        self.tables, self.opened = {}, 0
        # The library keeps these functions; so must we.
        self.hooks = [READ(self._read), WRITE(self._write), WAKE(self.wakes.append)]
        self.hooks += [SEND(lambda frame, length: self.sent.append(bytes(frame[:length])))]
        names = ("on_read", "on_write", "on_wake", "on_send")
        for name, hook in zip(names, self.hooks, strict=True):
            ctypes.c_void_p.in_dll(library, name).value = ctypes.cast(hook, ctypes.c_void_p).value

    def _read(self, address):
        name = self.names[address]
        if name == "ltl.busy":
            self.looks += 1
            self.busy -= self.busy > 0
            return int(self.busy > 0)
        if name == "ltl.failure":
            return 1 << 16 | self.failures[0] if self.failures else 0xABC
        return self.values[name]

    def _write(self, address, value):
        name = self.names[address]
        if self.busy and name.startswith("ltl."):
            self.errors.append(f"{name} was written while a command was under way")
        self.writes.append((name, value))
        self.values[name] = value
        if name == "ltl.command":
            self.busy = self.rng.randint(1, 9)
            # Bit 2: which table; bit 1: open; from bit 16 on: the entry.
            self.tables.pop((value >> 2 & 1, value >> 16), None)
            if value >> 1 & 1:
                self.opened += 1
                fields = {**self.values, "opened": self.opened}
                self.tables[value >> 2 & 1, value >> 16] = fields
        elif name == "ltl.failure_next" and value == 1:
            self.failures.pop(0)

    def start(self, chance=0x1234):
        self.library.ltl_start(chance)
        assert self.errors == []
        return self

    def serve(self, now=0):
        self.writes.clear()
        self.library.set_time(now)
        self.library.ltl_serve()
        return self.writes

    def take(self, frame):
        self.library.ltl_take_frame(frame, len(frame))

    def hear(self, number, ours, theirs, asks=False):
        """A greeting of a peer, as its table has it: its number and what it knows of ours."""
        self.writes.clear()
        self.take(greeting(number, self, ours, theirs, asks))
        return list(self.writes)


def printed(capfd):
    ctypes.CDLL(None).fflush(None)
    return capfd.readouterr().out


def greeting(peer, board, ours, theirs, asks=False, **changed):
    """The frame, as docs/network.md says, made by another's packet library."""
    ether = {"src": peer.mac.to_bytes(6, "big"), "dst": board.mac.to_bytes(6, "big")}
    fields = {"sport": 0xC17A, "dport": 68, "ip": peer.ip, "to": board.ip, **changed}
    data = b"LTL\x01" + struct.pack(">HHB", ours, theirs, asks)
    ip = Ip(
        src=str(ipaddress.IPv4Address(fields["ip"])), dst=str(ipaddress.IPv4Address(fields["to"]))
    )
    udp = UDP(sport=fields["sport"], dport=fields["dport"])
    return bytes(Ether(src=mac_text(ether["src"]), dst=mac_text(ether["dst"])) / ip / udp / data)


def mac_text(mac):
    return ":".join(f"{byte:02x}" for byte in mac)


def told(frame):
    """``(destination's IP, ours, theirs, asks)`` of a greeting that a board sent."""
    packet = Ether(frame)
    assert packet.type == 0x0800
    assert (packet.sport, packet.dport) == (0xC17A, 68)
    data = bytes(packet[UDP].payload)[:9]
    assert data[:4] == b"LTL\x01"
    ours, theirs, asks = struct.unpack(">HHB", data[4:])
    return int(ipaddress.IPv4Address(packet[Ip].dst)), ours, theirs, asks


def commands(number, peer, incarnation, *what):
    """The writes that carry out commands for the entries of a peer."""
    first_low = peer.mac.to_bytes(6, "big")
    for flags in what:
        yield "ltl.peer_mac", int.from_bytes(first_low[:4], "little")
        yield "ltl.peer_mac_high", int.from_bytes(first_low[4:], "little")
        yield "ltl.peer_ip", peer.ip
        yield "ltl.incarnation", incarnation
        yield "ltl.rto", peer.timeout_us
        for vc in (0, 1):
            yield "ltl.peer_connection", 2 * peer.theirs + vc
            yield "ltl.vc", vc
            yield "ltl.command", flags | (2 * number + vc) << 16


CLOSE, OPEN_RECEIVE, OPEN_SEND = 0b001, 0b111, 0b011


@pytest.mark.parametrize("seed", range(5))
def test_every_write_in_order(build, capfd, seed):
    """The start, a peer that joins, and one that is new after that."""
    board = Board(build(peers_header(THREE, clock_mhz=54.2, dscp=24)), seed).start(0xFFFF)
    assert board.writes == [
        ("ltl.tick_cycles", 55),
        ("ltl.dscp", 24),
        ("ltl.enable", 1),
        ("cluster.enable", 1),
    ]
    assert board.wakes == [10]
    assert board.library.does_listen()
    assert printed(capfd) == "ltl: 3 peers\n"
    assert board.serve() == []
    assert [told(frame) for frame in board.sent] == [(p.ip, 0xFFFF, 0, 1) for p in THREE]
    peer = THREE[0]
    # It does not know our number: what receives is opened, nothing is sent yet.
    assert board.hear(peer, 7, 0, asks=True) == [
        ("cluster.enable", 1),
        *commands(1, peer, 6, CLOSE, OPEN_RECEIVE),
    ]
    board.serve(1)
    assert told(board.sent[-1]) == (peer.ip, 0xFFFF, 7, 1)
    assert board.hear(peer, 7, 0xFFFF) == [
        *commands(1, peer, 6, OPEN_SEND),
        ("cluster.enable", 0b11),
    ]
    assert printed(capfd) == "ltl: peer 1 (10.0.0.3) joined\n"
    assert board.looks >= 6, "each command must be waited for"
    # It has restarted: we take another number, too.
    assert board.hear(peer, 9, 0, asks=True) == [
        ("cluster.enable", 1),
        *commands(1, peer, 10, CLOSE, OPEN_RECEIVE),
    ]
    assert printed(capfd) == "ltl: peer 1 (10.0.0.3) is new\n"
    board.serve(2)
    assert told(board.sent[-1]) == (peer.ip, 1, 9, 1)
    assert board.errors == []


def test_greetings_of_others_change_nothing(build):
    board = Board(build(peers_header(THREE, clock_mhz=1))).start()
    peer = THREE[0]
    stranger = Peer(mac=0x0200_0000_0077, ip=peer.ip, theirs=1, timeout_us=1, called=True)
    good = greeting(peer, board, 7, 0)
    bad = [
        greeting(stranger, board, 7, 0),
        greeting(peer, board, 7, 0, ip=peer.ip + 1),
        greeting(peer, board, 7, 0, to=board.ip + 1),
        greeting(peer, board, 7, 0, sport=67),
        greeting(peer, board, 7, 0, dport=69),
        greeting(peer, board, 0, 0),
        b"\x02" + bytes(4) + b"\x09" + good[6:],
        good[:-1],
        good[:-9] + b"LTL\x02" + good[-5:],
        *(good[:n] for n in range(0, 50, 7)),
        *(good[:n] + bytes([good[n] ^ 1]) + good[n + 1 :] for n in range(14, len(good))),
    ]
    board.writes.clear()
    for frame in bad:
        board.take(frame)
    assert board.writes == []
    board.take(good)
    assert board.writes != []


def test_greetings_are_repeated_until_they_are_answered(build):
    board = Board(build(peers_header(THREE[:1], clock_mhz=1))).start()
    board.library.set_busy(True)
    board.serve(0)
    assert board.sent == [], "the frame port is busy"
    board.library.set_busy(False)
    for now in range(0, 1000, 10):
        board.serve(now)
    assert len(board.sent) == 5
    board.hear(THREE[0], 7, 0x1234, asks=True)
    board.serve(1000)
    assert told(board.sent[-1]) == (THREE[0].ip, 0x1234, 7, 0)
    for now in range(1010, 3000, 10):
        board.serve(now)
    assert len(board.sent) == 6, "both have joined"


def test_a_board_without_peers(build, capfd):
    board = Board(build(peers_header((), clock_mhz=1))).start()
    assert board.writes == [
        ("ltl.tick_cycles", 1),
        ("ltl.dscp", 0),
        ("ltl.enable", 1),
        ("cluster.enable", 1),
    ]
    assert board.wakes == []
    assert printed(capfd) == "ltl: 0 peers\n"


def test_peers_of_the_configuration(build, capfd):
    """They take the place of those that the firmware was built for, and add to them."""
    fourth = Peer(mac=0x0200_0000_00FF, ip=0x0A00_0063, theirs=2, timeout_us=300, called=True)
    second = Peer(mac=0x0200_0000_00EE, ip=0x0A00_0062, theirs=1, timeout_us=77, called=True)
    library = build(peers_header(THREE, clock_mhz=54.2, dscp=24))
    library.configure(
        b"peer14=02:00:00:00:00:ff,10.0.0.99,2,300,1\n"
        b"peer2=02:00:00:00:00:ee,10.0.0.98,1,77,1\n"
        b"peer1=02:00:00:00:00:ee,10.0.0.98,0,77,1\n"  # not allowed, so not used
        b"peer16=02:00:00:00:00:ee,10.0.0.98,1,77,1\n"
    )
    board = Board(library).start()
    table = {1: THREE[0], 2: second, 3: THREE[2], 14: fourth}
    assert board.writes == [
        ("ltl.tick_cycles", 55),
        ("ltl.dscp", 24),
        ("ltl.enable", 1),
        ("cluster.enable", 1),
    ]
    assert printed(capfd) == f"ltl: {len(table)} peers\n"
    board.serve()
    assert [told(frame)[0] for frame in board.sent] == [peer.ip for peer in table.values()]
    for number, peer in table.items():
        opened = [*board.hear(peer, 7, 0), *board.hear(peer, 7, 0x1234)]
        for write in commands(number, peer, 0x123B, CLOSE, OPEN_RECEIVE, OPEN_SEND):
            assert write in opened
    printed(capfd)
    board.failures = [2 * 2]
    board.serve()
    assert printed(capfd) == "ltl: requests to peer 2 (10.0.0.98) failed\n"


def test_a_shell_without_ltl(build, capfd):
    """There is no accessor, so there can be no access; nothing is said either."""
    library = build("#error not for a shell without LTL\n", regions=[])
    board = Board(library).start()
    board.failures = [2]
    assert board.serve() == []
    assert board.wakes == []
    assert printed(capfd) == ""


class World:
    """Boards of a topology, and a network between them that loses, doubles and delays frames."""

    def __init__(self, build, topology, seed=0, loss=0.0, late=0):
        self.build, self.topology, self.rng = build, topology, make_rng(seed, "world")
        self.loss, self.late, self.now, self.frames, self.starts = loss, late, 0, [], 0
        self.boards = {}
        for spec in topology.boards:
            self.start(spec)

    def start(self, spec):
        """Switch a board on, or restart it: nothing of its past is left but what others keep."""
        library = self.build(peers_text(self.topology, spec))
        library.set_time(self.now)
        self.starts += 1
        board = Board(library, 0, spec.mac_int, spec.ip_int).start(self.rng.randrange(1 << 16))
        board.born = self.starts
        self.boards[spec.ip_int] = board

    def step(self, milliseconds=10):
        self.now += milliseconds
        for board in self.boards.values():
            board.serve(self.now)
            for frame in board.sent:
                for _ in range(self.rng.choice((1, 2)) if self.loss else 1):
                    if self.rng.random() >= self.loss:
                        due = self.now + self.rng.randint(0, self.late)
                        self.frames.append((due, frame))
            board.sent.clear()
        due = [frame for at, frame in self.frames if at <= self.now]
        self.frames = [(at, frame) for at, frame in self.frames if at > self.now]
        self.rng.shuffle(due)
        for frame in due:
            for board in self.boards.values():  # as from a switch that knows nobody
                board.take(frame)
        for board in self.boards.values():
            assert board.errors == []

    def faults(self):
        """Send entries whose other end is not open, or not theirs, as ``(board, entry)``.

        With each, frames would have been sent before the other end was opened for the last time,
        or not all since: LTL finds out, by time-outs. A pair of entries fits if the incarnation is
        the same, and each opening of the one has met one of the other.
        """
        found = []
        for board in self.boards.values():
            for (receive, entry), fields in board.tables.items():
                if receive:
                    continue
                other = self.boards[fields["ltl.peer_ip"]]
                back = other.tables.get((1, fields["ltl.peer_connection"]))
                met = (board.born, entry, fields["opened"])
                fits = back is not None and back["ltl.incarnation"] == fields["ltl.incarnation"]
                if not fits or back.setdefault("met", met) != met:
                    found.append((board, entry))
        return found

    def is_whole(self):
        pairs = {tuple(sorted((c.source, c.target))) for c in self.topology.connections}
        opened = sum(len(board.tables) for board in self.boards.values())
        return opened == 2 * 4 * len(pairs) and self.faults() == []


MESH = uniform(4)
TREE = parse(
    {
        "boards": [{"name": name} for name in "abcd"],
        "ltl": [{"from": a, "to": b} for a, b in ("ca", "ab", "dc")],
    }
)


@pytest.mark.parametrize("topology", [MESH, TREE], ids=["mesh", "tree"])
@seeds(2)
def test_a_board_that_restarts_is_taken_back(build, topology, seed):
    """On a good network within a second, one after the other and two at once."""
    world = World(build, topology, seed)
    for restarted in ((), (0,), (2,), (1, 3), (0, 1, 2, 3)):
        for k in restarted:
            world.start(topology.boards[k])
        for _ in range(100):
            world.step()
            # Nothing is sent to an end that is not open, not even for a moment.
            bad = [(board, entry) for board, entry in world.faults() if not restarted]
            assert bad == []
        assert world.is_whole(), restarted
        for spec in topology.boards:
            called = sum(
                1 << n for n, p in enumerate(topology.peers(spec.name), start=1) if p.called
            )
            assert world.boards[spec.ip_int].values["cluster.enable"] == 1 | called


@seeds(6)
def test_all_join_again_whatever_the_network_does(build, seed):
    """Half of the greetings are lost, doubled or seconds late; boards restart; LTL fails at will.

    What greetings alone do not mend, LTL reports, as here from time to time.
    """
    world = World(build, TREE, seed, loss=0.5, late=3000)
    for _ in range(60):
        world.rng.choice((lambda: world.start(world.rng.choice(TREE.boards)), lambda: None))()
        for board in world.boards.values():
            sending = [entry for receive, entry in board.tables if not receive]
            if sending and world.rng.random() < 0.2:
                board.failures.append(world.rng.choice(sending))
        for _ in range(world.rng.randrange(100)):
            world.step()
    world.loss, world.late = 0.0, 0
    for _ in range(20):
        for _ in range(100):
            world.step()
        for board, entry in world.faults():
            board.tables.pop((0, entry))
            board.failures.append(entry)
    assert world.is_whole()


@pytest.mark.parametrize(
    "topology",
    [MESH, TREE],
    ids=["mesh", "tree"],
)
def test_the_entries_of_all_boards_fit_together(build, topology):
    """Each open entry names, at the other end, one that names it; requests and replies apart."""
    world = World(build, topology)
    for _ in range(50):
        world.step()
    boards = world.boards
    joined = {tuple(sorted((c.source, c.target))) for c in topology.connections}
    assert sum(len(board.tables) for board in boards.values()) == 2 * 4 * len(joined)
    for spec in topology.boards:
        for (receive, entry), fields in boards[spec.ip_int].tables.items():
            other = fields["ltl.peer_ip"]
            back = boards[other].tables[1 - receive, fields["ltl.peer_connection"]]
            assert (back["ltl.peer_ip"], back["ltl.peer_connection"]) == (spec.ip_int, entry)
            assert back["ltl.peer_mac"] == int.from_bytes(bytes.fromhex("02000000"), "little")
            assert back["ltl.peer_mac_high"] == int(spec.mac[-2:], 16) << 8
            for name in ("incarnation", "vc", "credit", "peer_port", "rto"):
                assert back[f"ltl.{name}"] == fields[f"ltl.{name}"], name
            assert fields["ltl.vc"] == entry % 2 == fields["ltl.peer_connection"] % 2


def test_jobs_may_go_where_the_topology_says(build):
    ltl = [{"from": a, "to": b} for a, b in ("ca", "ab", "dc", "ac")]
    topology = parse({"boards": [{"name": name} for name in "abcd"], "ltl": ltl})
    world = World(build, topology)
    for _ in range(50):
        world.step()
    masks = [board.values["cluster.enable"] for board in world.boards.values()]
    # Peers of a: b, c; of b: a; of c: a, d; of d: c.
    assert masks == [0b111, 0b001, 0b011, 0b011]


def test_a_failed_peer_gets_no_more_jobs(build, capfd):
    board = Board(build(peers_header(THREE, clock_mhz=125))).start()
    for peer in THREE:
        board.hear(peer, 7, 0x1234)
    assert board.values["cluster.enable"] == 0b1011
    printed(capfd)
    assert board.serve() == [], "nothing has failed"
    board.failures = [2 * 3]
    assert board.serve() == [("cluster.enable", 0b0011), ("ltl.failure_next", 1)]
    assert printed(capfd) == "ltl: requests to peer 3 (10.0.0.5) failed\n"
    assert told(board.sent[-1]) == (THREE[2].ip, 0x1235, 0, 1), "greeted anew at once"
    # Two at once, one of them of a board that gets no jobs anyway.
    board.failures = [2 * 2 + 1, 2 * 1]
    assert board.serve() == [
        ("cluster.enable", 0b0011),
        ("ltl.failure_next", 1),
        ("cluster.enable", 0b0001),
        ("ltl.failure_next", 1),
    ]
    assert printed(capfd) == (
        "ltl: replies to peer 2 (192.168.1.254) failed\nltl: requests to peer 1 (10.0.0.3) failed\n"
    )
    assert board.failures == []
    # It answers: both have changed their numbers.
    assert board.hear(THREE[2], 8, 0x1235)[-1] == ("cluster.enable", 0b1001)
