"""A bench for what makes the board's address and its connection to a server: ip.c, server.c.

They run on this machine; the registers of shell, TCP engine and frame port are in Python.
"""

import ctypes
from dataclasses import replace

from dhcp_bench import reply
from firmware_host import Text, compile_library
from peers_bench import registers_header
from trebuchet.cores.net.frame_port import NIC_BLOCK
from trebuchet.cores.shell import SHELL_BLOCK
from trebuchet.cores.tcp.config import TINY
from trebuchet.cores.tcp.registers import tcp_block
from trebuchet.soc.csr_export import WORD_BYTES, register_offsets, register_words

TCP_BLOCK = tcp_block(replace(TINY, active=True))
REGIONS = [(SHELL_BLOCK, 0xF000_1000), (TCP_BLOCK, 0xF000_2000), (NIC_BLOCK, 0xF000_3000)]
SOC_H = """
#define TREBUCHET_IP 0x0a000002
#define TREBUCHET_MAC_HIGH 0x0200
#define TREBUCHET_MAC_LOW 2
#define TREBUCHET_DHCP 1
#define TREBUCHET_DHCP_RETRY_MS 250
#define TREBUCHET_MAILBOX_SERVICE 2
#define TREBUCHET_MAILBOX_PORT 80
#define TREBUCHET_SMP_SERVICE 3
#define TREBUCHET_UDP_SERVICES
#define TREBUCHET_HOST
#define TREBUCHET_VERSION "0.2.0"
#define TREBUCHET_BOARD "ecpix5"
"""
#: The bus, the board's time, and what the test calls.
FAKES = """
#include <stdio.h>
#include <string.h>
#include <generated/trebuchet_status_codes.h>
#include "board.h"
#include "command.h"
#include "ip.h"
#include "log.h"
#include "serial.h"
#include "server.h"
#include "settings.h"
uint32_t (*on_read)(uint32_t);
void (*on_write)(uint32_t, uint32_t);
uint32_t now_ms, period_ms = 0xffffffff;
uint32_t fake_read(uint32_t address) { return on_read(address); }
void fake_write(uint32_t address, uint32_t value) { on_write(address, value); }
void board_wake_every(uint32_t milliseconds) { period_ms = milliseconds; }
uint32_t wakes; /* how often a part asked for another turn */
void board_wake(void) { wakes++; }
uint32_t board_uptime_ms(void) { return now_ms; }
uint32_t board_cycles(void) { return 12345; }
char lines[4096]; /* the log, a line after the other; what does not fit is lost */
void log_write(enum log_level level, const char *part, const char *text)
{
    size_t used = strlen(lines);

    snprintf(lines + used, sizeof(lines) - used, "%d %s: %s\\n", level, part, text);
}
void serial_string(const char *string) { (void)string; }
struct config *settings(void) { return NULL; }
struct config_server configured; /* port 0: the configuration names no server */
bool config_find_server(const struct config *config, struct config_server *server)
{
    (void)config;
    *server = configured;
    return configured.port != 0;
}
const char *command_status_name(uint8_t status)
{
    static const char *const names[] = TREBUCHET_STATUS_NAMES;

    return names[status];
}
void serve(void)
{
    ip_serve();
    server_serve();
}
uint8_t ask(struct text *out)
{
    struct words words = { .count = 1 };

    return ip_command(&words, out);
}
bool begin(bool dhcp, uint32_t netmask, uint32_t gateway)
{
    struct address address = network_default();
    address.dhcp &= dhcp;
    address.netmask = netmask;
    address.gateway = gateway;
    strcpy(address.name, "box-1");
    return ip_start(&address);
}
"""
READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)


PARTS = (
    "ip",
    "host",
    "discover",
    "reassembly",
    "server",
    "ltl",
    "nic",
    "dhcp",
    "packet",
    "network",
    "text",
)
PARTS += ("buffer", "log_status")


def compile_ip(folder, regions=REGIONS):
    """Path of the firmware's part as a library, for a board with these register blocks."""
    generated = folder / "generated"
    generated.mkdir()
    (generated / "trebuchet_regs.h").write_text(registers_header(regions))
    (generated / "soc.h").write_text(SOC_H)
    return compile_library(folder, PARTS, FAKES)


class Board:
    """The registers of shell, TCP engine and frame port; every write that counts, in order."""

    def __init__(self, library, regions=REGIONS):
        self.library = library
        self.names = {
            base + register_offsets(block)[register.name] + WORD_BYTES * word: (
                block.name,
                register.name + "_high" * word,
            )
            for block, base in regions
            for word in range(2)
            for register in block.registers
            if word < len(register_words(register))
        }
        self.value = {("tcp", "idle"): 1, ("nic", "status"): 0, ("nic", "port"): 68}
        self.log, self.sent, self.waiting, self.words = [], [], [], []
        self.at = 0  # of the word that the port shows, in bytes
        self._keep = READ(self._read), WRITE(self._write)
        for name, function in zip(("on_read", "on_write"), self._keep, strict=True):
            ctypes.c_void_p.in_dll(library, name).value = ctypes.cast(
                function, ctypes.c_void_p
            ).value
        self.time = ctypes.c_uint32.in_dll(library, "now_ms")

    def _read(self, address):
        name = self.names[address]
        frame = self.waiting[0] if self.waiting else b""
        if name == ("nic", "status"):
            left = len(frame) - self.at
            end = (1 << 2 | (4 - left) << 3) if frame and left <= 4 else 0
            return bool(self.waiting) | self.value[name] | end
        if name == ("nic", "rx_data"):
            return int.from_bytes(frame[self.at : self.at + 4].ljust(4, b"\xa5"), "little")
        return self.value[name]

    def _write(self, address, value):
        block, name = self.names[address]
        self.value[block, name] = value
        if block != "nic":
            self.log.append((name, value))
        elif name == "rx_next" and self.waiting:
            self.at += 4
            if self.at >= len(self.waiting[0]):
                self.waiting.pop(0)
                self.at = 0
        elif name == "tx_write":
            self.words.append(self.value["nic", "tx_data"])
        elif name == "send":
            assert len(self.words) == -(-value // 4)
            data = b"".join(word.to_bytes(4, "little") for word in self.words)
            self.sent.append(data[:value])
            self.words = []

    def begin(self, dhcp=True, netmask=0, gateway=0):
        self.library.begin.restype = ctypes.c_bool
        numbers = ctypes.c_uint32(netmask), ctypes.c_uint32(gateway)
        return self.library.begin(ctypes.c_bool(dhcp), *numbers)

    def serve(self, milliseconds=0):
        self.time.value += milliseconds
        self.library.serve()

    def next_message(self, limit=20_000, step=5):
        """Let time pass until a frame is sent."""
        for _ in range(0, limit, step):
            if self.sent:
                return self.sent.pop(0)
            self.serve(step)
        raise AssertionError("nothing was sent")

    def answer(self, frame, kind, **fields):
        self.waiting.append(reply(frame, kind, **fields))
        self.serve()

    def bind(self, **fields):
        self.answer(self.next_message(), "offer", **fields)
        self.answer(self.next_message(), "ack", **fields)

    def command(self):
        room = 1000
        buffer = ctypes.create_string_buffer(room)
        text = Text(ctypes.cast(buffer, ctypes.c_char_p), 0, room, False)
        assert self.library.ask(ctypes.byref(text)) == 0
        lines = buffer.raw[: text.length].decode().splitlines()
        width = len("address    ")
        return {line[:width].strip(): line[width:] for line in lines}

    def told(self):
        """Lines of the log since the last call."""
        buffer = (ctypes.c_char * 4096).in_dll(self.library, "lines")
        lines = buffer.value.decode().splitlines()
        buffer.value = b""
        return lines

    def use(self, ip):
        """Writes that give the shell an address."""
        return [("ip", ip), ("enable", int(ip != 0)), ("abort_all", 0), ("enable", 1)]
