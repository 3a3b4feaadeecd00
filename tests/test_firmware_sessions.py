"""The command `sessions`, compiled for this machine, with an engine that the test plays."""

import ctypes

import pytest
from firmware_host import generated, new_text, shared_library
from trebuchet.models.status import Status

GAUGES = ("sessions", "sessions_used", "half_open", "segments_free", "descriptors_free")
GAUGES += ("established", "refused_full", "refused_half_open", "timeouts")
LOOK = """
#define TREBUCHET_TCP_INSPECT_ADDR 0
void test_inspect(uint32_t request);
uint32_t test_value(void);
uint32_t test_busy(void);
static inline void trebuchet_tcp_inspect_write(uint32_t request) { test_inspect(request); }
static inline uint32_t trebuchet_tcp_inspect_busy_read(void) { return test_busy(); }
static inline uint32_t trebuchet_tcp_inspect_value_read(void) { return test_value(); }
"""
RUN = """
#include "sessions.h"
void (*on_inspect)(uint32_t);
uint32_t slots, value, waits;
const struct command commands[1];
const unsigned command_count;
uint32_t trebuchet_read32(uint32_t address) { return address == 0 ? slots : 100 + address; }
void test_inspect(uint32_t request) { waits = 3; on_inspect(request); }
uint32_t test_value(void) { return waits == 0 ? value : 0xdeadbeef; }
uint32_t test_busy(void) { return waits == 0 ? 0 : waits--; }
uint8_t run(unsigned count, const char *argument, struct text *out)
{
	struct words words = { count, { "sessions", argument, argument }, "" };
	return sessions_command(&words, out);
}
"""
ESTABLISHED, TIME_WAIT = 5, 11
HEADING = "session state peer port unacknowledged unread snd.una rcv.nxt rto snd.nxt peer-window "
HEADING += "window rtt cwnd queue\n"


REGISTERS = """
#pragma once
#include <stdint.h>
#define TREBUCHET_TCP_BASE 0
uint32_t trebuchet_read32(uint32_t address);
static inline uint32_t trebuchet_tcp_sessions_read(void) { return trebuchet_read32(0); }
"""


def registers(look, high):
    """Register k of ``GAUGES`` is at address k; the test gives all but the first 100 + k. Only an
    engine with sessions in external memory says how many were ever used: 200 at address 100."""
    names = [f"#define TREBUCHET_TCP_{name.upper()}_ADDR {k}" for k, name in enumerate(GAUGES)]
    names += ["#define TREBUCHET_TCP_SESSIONS_HIGH_ADDR 100"] if high else []
    return REGISTERS + "\n".join(names) + "\n" + (LOOK if look else "")


def compiled(folder, look=True, high=False):
    (generated(folder) / "generated" / "trebuchet_regs.h").write_text(registers(look, high))
    return shared_library(folder, ("sessions", "command", "text"), RUN)


class Board:
    """``table``: words by number of the session."""

    def __init__(self, folder, slots, table, look=True, high=False):
        self.lib, self.table, self.asked = compiled(folder, look, high), table, []
        self.callback = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(self._inspect)
        slot = ctypes.c_void_p.in_dll(self.lib, "on_inspect")
        slot.value = ctypes.cast(self.callback, ctypes.c_void_p).value
        ctypes.c_uint32.in_dll(self.lib, "slots").value = slots

    def _inspect(self, request):
        session, word = request & 0x1FFFF, request >> 17 & 15
        assert request >> 21 == 1
        self.asked.append(session)
        value = self.table.get(session, (0,) * 14)[word]
        ctypes.c_uint32.in_dll(self.lib, "value").value = value

    def run(self, *arguments, room=3904):
        buffer, text = new_text(room)
        first = arguments[0].encode() if arguments else None
        status = self.lib.run(1 + len(arguments), first, ctypes.byref(text))
        assert not text.overflow
        return Status(status), buffer.raw[: text.length].decode()


def row(state, last=2, port=40_000, local=7, unacknowledged=0, unread=0, rest=(0,) * 9):
    return (state, 0x0A00_0000 + last, port | local << 16, unacknowledged, unread, *rest)


def test_usage(tmp_path):
    status, text = Board(tmp_path, 64, {}).run()
    assert status == Status.OK
    assert text.startswith("slots 64\nused 101\nhalf open 102\n")
    assert text.endswith("timed out 108\n")


def test_rows_and_where_they_begin(tmp_path):
    table = {
        3: row(ESTABLISHED, unacknowledged=(1 << 32) - 1, unread=5, rest=range(1, 10)),
        7: row(TIME_WAIT, 9),
    }
    board = Board(tmp_path, 8, table)
    first = "3 ESTABLISHED 10.0.0.2:40000 7 4294967295 5 1 2 3 4 5 6 7 8 9\n"
    second = "7 TIME-WAIT 10.0.0.9:40000 7 0 0 0 0 0 0 0 0 0 0 0\n"
    assert board.run("0") == (Status.OK, HEADING + first + second)
    assert board.run("4") == (Status.OK, HEADING + second)
    assert board.run("8") == (Status.OK, HEADING)
    assert board.run("0xffffffff") == (Status.OK, HEADING)


@pytest.mark.parametrize("arguments", [("x",), ("-1",), ("0", "1"), ("0x100000000",)])
def test_bad_arguments(tmp_path, arguments):
    board = Board(tmp_path, 8, {1: row(ESTABLISHED)})
    assert board.run(*arguments) == (Status.BAD_ARGUMENT, "")
    assert board.asked == []


def listed(board, room=3904):
    """Numbers of all sessions, by as many commands as it says."""
    found, start, commands = [], 0, 0
    while start is not None:
        status, text = board.run(str(start), room=room)
        assert status == Status.OK
        commands, start = commands + 1, None
        assert commands < 300
        for line in text.splitlines()[1:]:
            if line.startswith("more: sessions "):
                start = int(line.split()[-1])
            else:
                found.append(int(line.split()[0]))
    return found, commands


def test_a_full_answer_and_many_numbers_go_on(tmp_path):
    most = (1 << 32) - 1
    longest = row(4, 0xF5FF_FFFF, 65535, 65535, most, most, (most,) * 9)
    table = dict.fromkeys((*range(200), 1023, 1024, 2999), longest)
    board = Board(tmp_path, 3000, table)
    found, commands = listed(board)
    assert found == sorted(table)
    assert 8 <= commands <= 14
    assert max(board.asked) == 2999
    found, _ = listed(board, room=500)
    assert found == sorted(table)


def test_numbers_that_were_never_used_are_not_looked_at(tmp_path):
    """Of 131,072, 200 were used; looking at all others would take minutes in simulation."""
    table = dict.fromkeys((0, 150, 199), row(ESTABLISHED))
    board = Board(tmp_path, 1 << 17, table, high=True)
    assert listed(board) == (sorted(table), 1)
    assert {*board.asked} == {*range(200)}
    assert board.run("200") == (Status.OK, HEADING)


def test_an_engine_without_it(tmp_path):
    status, text = Board(tmp_path, 64, {}, look=False).run("0")
    assert (status, text) == (Status.NOT_BUILT_IN, "")
