"""A bench for the firmware's peers: ltl.c and greeting.c, with registers that record, in Python."""

import ctypes
import ipaddress
import json
import random
import shutil
import struct
import subprocess

from firmware_host import generated
from firmware_lib import FLAGS, PORT, SANITIZE
from scapy.layers.inet import IP as Ip
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from trebuchet.cores.csr import Register, RegisterBlock
from trebuchet.cores.ltl.registers import LTL_BLOCK
from trebuchet.soc.csr_export import c_header, json_map
from trebuchet.soc.peers import Peer

#: The firmware's files under test, and what they need.
PARTS = ("ltl", "greeting", "packet", "network", "text", "config", "config_keys")
PARTS += ("values", "crc32", "flash")
#: Peers that the gateware has room for; the topologies use fewer.
ROOM = 15
CLUSTER = RegisterBlock("cluster", (Register("enable", "rw", ROOM + 1, "", 1),))
REGIONS = [(LTL_BLOCK, 0xF000_1000), (CLUSTER, 0xF000_2000)]
#: A slot of a peer has one word from here on, by its number; what is written there is a reset.
SLOTS = 0xF000_3000
SOC_H = f"""\
#define TREBUCHET_IP 1
#define TREBUCHET_MAC_HIGH 2
#define TREBUCHET_MAC_LOW 3
#define TREBUCHET_LTL_PEERS {ROOM}
#define TREBUCHET_LTL_WINDOW 4
#define SLOTS {SLOTS:#x}u
"""
#: The bus, the frame port, addresses, the board's timer, and the console.
FAKES = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <generated/soc.h>
#include "board.h"
#include "ip.h"
#include "log.h"
#include "nic.h"
#include "role.h"
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
const struct role *role_find(const char *name)
{
    static struct role slot;
    slot.base = SLOTS + 4u * (uint32_t)atoi(name + strlen("peer"));
    return &slot;
}
void role_reset(const struct role *role) { on_write(role->base, 1); }
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


def builder(root, tmp_path):
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
        subprocess.run(command, check=True)
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
        self.names |= {SLOTS + 4 * n: f"peer{n}.reset" for n in range(1, ROOM + 1)}
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
        yield "ltl.credit", 4 if flags == OPEN_RECEIVE else 0
        for vc in (0, 1):
            yield "ltl.peer_connection", 2 * peer.theirs + vc
            yield "ltl.vc", vc
            yield "ltl.command", flags | (2 * number + vc) << 16


CLOSE, OPEN_RECEIVE, OPEN_SEND = 0b001, 0b111, 0b011
