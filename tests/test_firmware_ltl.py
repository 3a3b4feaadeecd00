"""The firmware's set-up of LTL, compiled for this machine, with registers that record."""

import ctypes
import json
import random
import subprocess

import pytest
from firmware_host import generated
from firmware_lib import FLAGS, PORT, SANITIZE
from trebuchet.cores.csr import Register, RegisterBlock
from trebuchet.cores.ltl.registers import LTL_BLOCK
from trebuchet.sim.fleet.firmware import peers_text
from trebuchet.sim.fleet.topology import parse, uniform
from trebuchet.soc.csr_export import c_header, json_map
from trebuchet.soc.peers import Peer, peers_header

#: The firmware's files under test, and what they need.
PARTS = ("ltl", "network", "text", "config", "config_keys", "values", "crc32", "flash")
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
#: The bus, the board's timer, and the console.
FAKES = """
#include <stdio.h>
#include <string.h>
#include "board.h"
#include "log.h"
#include "serial.h"
#include "settings.h"
static struct config config;
struct config *settings(void) { return &config; }
void configure(const char *text)
{
    config.block.length = (uint16_t)strlen(text);
    memcpy(config.block.text, text, config.block.length);
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
    """Compiles the firmware's part for a table of peers: ``build(header, regions)``."""

    def compiled(header, regions=REGIONS):
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
        return ctypes.CDLL(str(path))

    return compiled


class Board:
    """The registers: every write in order, the engine's tables, and how often firmware looked."""

    def __init__(self, library, seed=0):
        self.library, self.rng = library, random.Random(seed)
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
        self.tables = {}
        # The library keeps these functions; so must we.
        self.hooks = [READ(self._read), WRITE(self._write), WAKE(self.wakes.append)]
        for name, hook in zip(("on_read", "on_write", "on_wake"), self.hooks, strict=True):
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
            # Bit 2: which table; from bit 16 on: the entry.
            self.tables[value >> 2 & 1, value >> 16] = dict(self.values)
        elif name == "ltl.failure_next" and value == 1:
            self.failures.pop(0)

    def start(self):
        self.library.ltl_start()
        assert self.errors == []
        return self

    def serve(self):
        self.writes.clear()
        self.library.ltl_serve()
        return self.writes


def printed(capfd):
    ctypes.CDLL(None).fflush(None)
    return capfd.readouterr().out


def opening(number, peer):
    """The writes that open the four entries of a peer."""
    first_low = peer.mac.to_bytes(6, "big")
    yield "ltl.peer_mac", int.from_bytes(first_low[:4], "little")
    yield "ltl.peer_mac_high", int.from_bytes(first_low[4:], "little")
    yield "ltl.peer_ip", peer.ip
    yield "ltl.incarnation", 1
    yield "ltl.rto", peer.timeout_us
    for vc in (0, 1):
        yield "ltl.peer_connection", 2 * peer.theirs + vc
        yield "ltl.vc", vc
        yield "ltl.command", 0b111 | (2 * number + vc) << 16
        yield "ltl.command", 0b011 | (2 * number + vc) << 16


@pytest.mark.parametrize("seed", range(5))
def test_every_write_in_order(build, capfd, seed):
    board = Board(build(peers_header(THREE, clock_mhz=54.2, dscp=24)), seed).start()
    assert board.writes == [
        ("ltl.tick_cycles", 55),
        ("ltl.dscp", 24),
        *(write for n, peer in enumerate(THREE, start=1) for write in opening(n, peer)),
        ("ltl.enable", 1),
        ("cluster.enable", 0b1011),
    ]
    assert board.looks >= 12, "each command must be waited for"
    assert board.wakes == [10]
    assert printed(capfd) == "ltl: 3 peers\n"


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
        *(write for n, peer in table.items() for write in opening(n, peer)),
        ("ltl.enable", 1),
        ("cluster.enable", 1 | sum(1 << n for n in table)),
    ]
    assert printed(capfd) == f"ltl: {len(table)} peers\n"
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


@pytest.mark.parametrize(
    "topology",
    [
        uniform(4),
        parse(
            {
                "boards": [{"name": name} for name in "abcd"],
                "ltl": [{"from": a, "to": b} for a, b in ("ca", "ab", "dc")],
            }
        ),
    ],
    ids=["mesh", "tree"],
)
def test_the_entries_of_all_boards_fit_together(build, topology):
    """Each open entry names, at the other end, one that names it; requests and replies apart."""
    boards = {
        spec.ip_int: Board(build(peers_text(topology, spec))).start() for spec in topology.boards
    }
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
    masks = [
        Board(build(peers_text(topology, spec))).start().values["cluster.enable"]
        for spec in topology.boards
    ]
    # Peers of a: b, c; of b: a; of c: a, d; of d: c.
    assert masks == [0b111, 0b001, 0b011, 0b011]


def test_a_failed_peer_gets_no_more_jobs(build, capfd):
    board = Board(build(peers_header(THREE, clock_mhz=125))).start()
    printed(capfd)
    assert board.serve() == [], "nothing has failed"
    board.failures = [2 * 3]
    assert board.serve() == [("cluster.enable", 0b0011), ("ltl.failure_next", 1)]
    assert printed(capfd) == "ltl: requests to peer 3 (10.0.0.5) failed\n"
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
