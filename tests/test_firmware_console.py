"""The firmware's commands, line editor, log and crash dump, compiled for this machine."""

import ctypes
import random

import pytest
from firmware_host import Text, new_text, shared_library
from trebuchet.models.status import Status

#: A table with one command that says how it was called, and fakes of the board.
EXTRA = r"""
#include <string.h>
#include "board.h"
#include "command.h"
#include "dump.h"
#include "line.h"
#include "log.h"
#include "generated/trebuchet_status_codes.h"

uint32_t now;
uint32_t board_uptime_ms(void) { return now; }

static uint8_t echo(struct words *words, struct text *out)
{
    for (unsigned i = 0; i < words->count; i++) {
        text_plain(out, words->word[i]);
        text_char(out, '|');
    }
    return TREBUCHET_STATUS_OK;
}

static uint8_t fail(struct words *words, struct text *out)
{
    uint32_t status;

    if (!words_number(words, 1, &status))
        return TREBUCHET_STATUS_BAD_ARGUMENT;
    if (words->count > 2)
        text_plain(out, words->word[2]);
    return (uint8_t)status;
}

static uint8_t fill(struct words *words, struct text *out)
{
    (void)words;
    while (!out->overflow)
        text_char(out, '.');
    return TREBUCHET_STATUS_OK;
}

const struct command commands[] = {
    { "help", "[COMMAND]", "list the commands", command_help },
    { "echo", "", "say the words", echo },
    { "fail", "STATUS [REASON]", "fail", fail },
    { "fill", "", "write without end", fill },
};
const unsigned command_count = 4;

bool number(const char *word, uint32_t *value)
{
    struct words words = { .count = 1, .word = { word } };

    return words_number(&words, 0, value);
}

static struct line editor;
static char screen[1 << 16];
static size_t screen_length;

static void put(const char *data, size_t length)
{
    memcpy(screen + screen_length, data, length);
    screen_length += length;
}

void editor_new(void) { line_start(&editor, put); }
void editor_next(void) { line_prompt(&editor); }
int editor_byte(char byte) { return line_byte(&editor, byte); }
const char *editor_line(void) { return editor.text; }

size_t editor_screen(char *to)
{
    size_t length = screen_length;

    memcpy(to, screen, length);
    screen_length = 0;
    return length;
}

static void print(const char *line, size_t length)
{
    put(line, length);
    put("\n", 1);
}

void log_printed(void) { log_print_with(print); }
size_t dump_size(void) { return sizeof(struct dump); }
"""
NONE, DONE, TOO_LONG = range(3)
PROMPT = "trebuchet> "
HIDE = "\r\x1b[K"
UP, DOWN = "\x1b[A", "\x1b[B"


@pytest.fixture(scope="module")
def lib(tmp_path_factory):
    folder = tmp_path_factory.mktemp("firmware")
    library = shared_library(folder, ("command", "dump", "line", "log", "text"), EXTRA)
    library.command_run.restype = ctypes.c_uint8
    library.command_run.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(Text)]
    library.number.restype = ctypes.c_bool
    library.number.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32)]
    library.editor_line.restype = ctypes.c_char_p
    library.editor_screen.restype = ctypes.c_size_t
    library.log_set_level.restype = ctypes.c_bool
    library.dump_valid.restype = ctypes.c_bool
    library.dump_size.restype = ctypes.c_size_t
    return library


# --- commands ------------------------------------------------------------------------------------


def _run(lib, line, room=4000):
    line = line.encode("latin-1") if isinstance(line, str) else line
    buffer, text = new_text(room)
    status = lib.command_run(line, len(line), ctypes.byref(text))
    return Status(status), buffer.raw[: text.length].decode()


@pytest.mark.parametrize(
    ("line", "status", "output"),
    [
        ("", "OK", ""),
        ("  \t ", "OK", ""),
        ("\r\n", "OK", ""),
        ("echo", "OK", "echo|"),
        ("  echo\ta  b \r\n", "OK", "echo|a|b|"),
        ("echo 1 2 3 4 5 6 7", "OK", "echo|1|2|3|4|5|6|7|"),
        ("echo 1 2 3 4 5 6 7 8", "BAD_ARGUMENT", "error: BAD_ARGUMENT\n"),
        ("echo " + "x" * 122, "OK", "echo|" + "x" * 122 + "|"),
        ("echo " + "x" * 123, "TOO_LARGE", "error: TOO_LARGE\n"),
        ("echo \x00", "BAD_ARGUMENT", "error: BAD_ARGUMENT\n"),
        ("echo \x7f", "BAD_ARGUMENT", "error: BAD_ARGUMENT\n"),
        ("echo \xe4", "BAD_ARGUMENT", "error: BAD_ARGUMENT\n"),
        ("ech", "UNKNOWN_COMMAND", "error: UNKNOWN_COMMAND: 'help' lists the commands\n"),
        ("Echo", "UNKNOWN_COMMAND", "error: UNKNOWN_COMMAND: 'help' lists the commands\n"),
        (
            "fail",
            "BAD_ARGUMENT",
            "error: BAD_ARGUMENT: the form is: fail STATUS [REASON]\n",
        ),
        ("fail 16", "BUSY", "error: BUSY\n"),
        ("fail 16 because", "BUSY", "error: BUSY: because\n"),
        ("help fail", "OK", "fail STATUS [REASON]: fail\n"),
        ("help x", "UNKNOWN_COMMAND", "error: UNKNOWN_COMMAND\n"),
        ("help help x", "BAD_ARGUMENT", "error: BAD_ARGUMENT: the form is: help [COMMAND]\n"),
    ],
)
def test_commands(lib, line, status, output):
    assert _run(lib, line) == (Status[status], output)


def test_help_lists_every_command(lib):
    status, output = _run(lib, "help")
    assert status is Status.OK
    assert [line.split()[0] for line in output.splitlines()] == ["help", "echo", "fail", "fill"]
    assert "fail STATUS [REASON]        fail" in output.splitlines()


def test_output_that_does_not_fit_is_cut_and_told(lib):
    assert _run(lib, "fill", room=100) == (Status.NO_ROOM, "." * 100)


def test_an_error_has_room_where_its_own_text_had_none(lib):
    status, output = _run(lib, "fail 16 " + "y" * 100, room=60)
    assert status is Status.BUSY
    assert output.startswith("error: BUSY: yyyy")
    assert len(output) <= 60


def test_every_status_has_its_name(lib):
    lib.command_status_name.restype = ctypes.c_char_p
    for status in Status:
        assert lib.command_status_name(int(status)).decode() == status.name
    assert lib.command_status_name(len(Status)) == b"?"


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("0", 0),
        ("007", 7),
        ("4294967295", 2**32 - 1),
        ("4294967296", None),
        ("4294967300", None),
        ("42949672950", None),
        ("0xffffffff", 2**32 - 1),
        ("0XAbC", 0xABC),
        ("0x100000000", None),
        ("0x", None),
        ("", None),
        ("-1", None),
        ("1x", None),
        ("a", None),
        ("0xg", None),
    ],
)
def test_numbers(lib, word, value):
    found = ctypes.c_uint32(77)
    good = lib.number(word.encode(), ctypes.byref(found))
    assert (found.value if good else None) == value


# --- line editor ---------------------------------------------------------------------------------


def _screen(lib):
    """What has been written to the terminal since the last call."""
    buffer = ctypes.create_string_buffer(1 << 16)
    length = lib.editor_screen(buffer)
    return buffer.raw[:length].decode()


class Editor:
    """The editor, and a terminal that understands what it writes."""

    def __init__(self, lib):
        self.lib = lib
        self.screen()
        lib.editor_new()
        lib.editor_next()
        self.lines = []

    def screen(self):
        return _screen(self.lib)

    def type(self, text):
        """Type; a line that is done is noted (None: too long), and the next begun."""
        for byte in text.encode("latin-1"):
            event = self.lib.editor_byte(ctypes.c_char(bytes([byte])))
            if event != NONE:
                self.lines.append(self.lib.editor_line().decode() if event == DONE else None)
                self.lib.editor_next()
        return self

    def shown(self):
        """The last line of a terminal that starts empty."""
        cells, column = [], 0
        text = self.screen()
        while text:
            if text.startswith("\x1b[K"):
                del cells[column:]
                text = text[3:]
                continue
            c, text = text[0], text[1:]
            if c == "\r":
                column = 0
            elif c == "\n":
                cells, column = [], 0
            elif c == "\b":
                column -= 1
            else:
                cells[column : column + 1] = [c]
                column += 1
        return "".join(cells[:column])


@pytest.fixture
def editor(lib):
    return Editor(lib)


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_lines_end_with_cr_lf_or_both(editor, end):
    assert editor.type(f"one{end}two{end}{end}three{end}").lines == ["one", "two", "", "three"]


def test_echo_and_prompt(editor):
    assert editor.screen() == PROMPT
    editor.type("ab\tc")
    assert editor.screen() == "ab c"
    editor.type("\r")
    assert editor.screen() == f"\r\n{PROMPT}"


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("abx\bc", "abc"),
        ("abx\x7fc", "abc"),
        ("\b\x7fa", "a"),
        ("abc\x15d", "d"),
        ("abc\x03d", "d"),
        ("a\x01\x04\x0e\xff\x80b", "ab"),
        ("a\x1b[Cb\x1b[Dc\x1b[3~d\x1b[1;5Ce\x1bxf", "abcdef"),
        ("a\x1bOCb", "ab"),
    ],
)
def test_editing(editor, typed, line):
    editor.type(typed)
    assert editor.shown() == PROMPT + line
    assert editor.type("\r").lines == [line]


def test_history(editor):
    editor.type("".join(f"line {n}\r" for n in range(6)))
    editor.shown()
    for n in (5, 4, 3, 2):
        editor.type(UP)
        assert editor.shown() == f"{PROMPT}line {n}"
    editor.type(UP)
    assert editor.screen() == "", "the oldest stays"
    for n in (3, 4, 5):
        editor.type(DOWN)
        assert editor.shown() == f"{PROMPT}line {n}"
    editor.type(DOWN + DOWN)
    assert editor.shown() == PROMPT
    assert editor.type("\x1bOA!\r").lines[-1] == "line 5!"


def test_history_keeps_no_empty_lines_and_no_repetition(editor):
    editor.type("a\rb\rb\r\r\r")
    editor.screen()
    assert editor.type(UP + UP + "\r").lines[-1] == "a"


def test_a_line_of_the_greatest_length_passes_and_a_longer_is_dropped_whole(editor):
    longest = "x" * 127
    assert editor.type(longest + "\r" + longest + "y\b\b\rz\r").lines == [longest, None, "z"]
    assert editor.type("x" * 5000 + "\x03ok\r").lines[-1] == "ok"


def test_random_keys_end_in_the_line_that_is_shown(lib):
    rng = random.Random(11)
    keys = ["a", "b", " ", "\b", UP, DOWN, "\x15", "\x1b[C", "\x00", "c" * 40]
    for _ in range(50):
        editor = Editor(lib).type("first\rsecond\r")
        # A redraw of the prompt's line, so that the terminal starts as the editor does.
        editor.shown()
        editor.type("\x15" + "".join(rng.choices(keys, k=rng.randrange(30))))
        shown = editor.shown()
        (line,) = editor.type("\r").lines[2:]
        assert shown == PROMPT + line if line is not None else len(shown) == len(PROMPT) + 127


# --- log -----------------------------------------------------------------------------------------


def _log(lib, level, part, text, now=0):
    ctypes.c_uint32.in_dll(lib, "now").value = now
    lib.log_write(level, part.encode(), text.encode("latin-1"))


def _kept(lib):
    buffer, text = new_text(2000)
    lib.log_show(ctypes.byref(text))
    assert not text.overflow
    return buffer.raw[: text.length].decode().splitlines()


@pytest.fixture
def log(lib):
    # As at power-up: the memory's contents fit nothing.
    lib.log_start()
    lib.log_printed()
    lib.log_set_level(b"info")
    for _ in range(1100):
        _log(lib, 3, "x", "")
    Editor(lib).screen()
    return lib


def _printed(lib):
    return _screen(lib).splitlines()


@pytest.mark.parametrize(
    ("now", "stamp"),
    [(0, "    0.000"), (7, "    0.007"), (12345, "   12.345"), (2**32 - 1, "4294967.295")],
)
def test_log_lines(log, now, stamp):
    _printed(log)
    _log(log, 1, "ltl", "a peer \x1b[2J\n is gone", now)
    line = f"[{stamp}] warn ltl: a peer ?[2J? is gone"
    assert _printed(log) == [line]
    assert _kept(log)[-1] == line


def test_levels_say_what_is_printed_and_everything_is_kept(log):
    names = ["error", "warn", "info", "debug"]
    for limit, name in enumerate(names):
        assert log.log_set_level(name.encode())
        _printed(log)
        for level in range(4):
            _log(log, level, "p", f"at {name}")
        assert [line.split()[2] for line in _printed(log)] == names[: limit + 1]
        assert [line.split()[2] for line in _kept(log)[-4:]] == names
    assert not log.log_set_level(b"loud")
    assert not log.log_set_level(b"")


def test_the_ring_keeps_the_last_whole_lines(log):
    rng = random.Random(3)
    written = []
    for n in range(400):
        text = f"{n} " + "t" * rng.randrange(0, 200)
        _log(log, 2, "ring", text)
        written.append(f"[    0.000] info ring: {text}"[:127])
        kept = _kept(log)
        if n > 40:
            assert kept == written[-len(kept) :]
            size = sum(len(line) + 1 for line in kept)
            assert 1024 - 128 < size <= 1024


def test_the_log_survives_a_restart(log):
    _log(log, 2, "a", "before")
    log.log_start()
    assert _kept(log)[-1].endswith("before")


# --- crash dump ----------------------------------------------------------------------------------


class Dump(ctypes.Structure):
    _fields_ = [
        ("scratch", ctypes.c_uint32),
        ("cause", ctypes.c_uint32),
        ("pc", ctypes.c_uint32),
        ("value", ctypes.c_uint32),
        ("x", ctypes.c_uint32 * 31),
        ("uptime_ms", ctypes.c_uint32),
        ("check", ctypes.c_uint32),
    ]


def test_a_dump_is_valid_until_a_bit_of_it_changes(lib):
    assert lib.dump_size() == ctypes.sizeof(Dump)
    rng = random.Random(5)
    dump = Dump.from_buffer_copy(rng.randbytes(ctypes.sizeof(Dump)))
    assert not lib.dump_valid(ctypes.byref(dump))
    lib.dump_seal(ctypes.byref(dump))
    sealed = bytes(dump)
    for bit in range(8 * len(sealed)):
        damaged = bytearray(sealed)
        damaged[bit // 8] ^= 1 << bit % 8
        scratch = bit < 32
        assert lib.dump_valid((ctypes.c_char * len(sealed)).from_buffer(damaged)) == scratch, bit
    assert lib.dump_valid(ctypes.byref(dump))
    lib.dump_clear(ctypes.byref(dump))
    assert not lib.dump_valid(ctypes.byref(dump))


@pytest.mark.parametrize(
    ("cause", "name"),
    [
        (2, "illegal instruction (2)"),
        (7, "store access fault (7)"),
        (11, "trap (11)"),
        (0x100, "watchdog: the firmware hung (256)"),
        (0x101, "the stack grew into the data (257)"),
    ],
)
def test_a_dump_as_text(lib, cause, name):
    dump = Dump(0, cause, 0x1234, 0xDEADBEEF, (ctypes.c_uint32 * 31)(*range(1, 32)), 4567, 0)
    buffer, text = new_text(1000)
    lib.dump_write(ctypes.byref(text), ctypes.byref(dump))
    lines = buffer.raw[: text.length].decode().splitlines()
    assert lines[0] == f"crash: {name} after 4.567 s"
    assert lines[1] == "pc  00001234  value deadbeef"
    words = " ".join(lines[2:]).split()
    abi = "ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11"
    assert words[::2] == [*abi.split(), "t3", "t4", "t5", "t6"]
    assert [int(word, 16) for word in words[1::2]] == list(range(1, 32))
