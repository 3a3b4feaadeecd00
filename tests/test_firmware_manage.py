"""The firmware's mailbox and management service, compiled for this machine, on the real mailbox.

The C code runs in a thread; each register access waits until the simulation has carried it out. The
role slot is a model in Python: the golden model of the ECG role at its registers.
"""

import ctypes
import json
import queue
import struct
import threading

import numpy
import pytest
from manage_lib import (
    IMAGE_AT,
    MAILBOX_BASE,
    ROLE,
    ROLE_BASE,
    SMP_BASE,
    build_manage,
    bus_functions,
)
from service_model import Connection
from test_services_late import sweeping
from test_services_mailbox import Bench, Firmware
from trebuchet.client.smp import (
    Configuration,
    Core,
    Decoder,
    Message,
    MessageType,
    data_message,
    parse_reply,
    parse_response,
)
from trebuchet.cores.services.mailbox import MAILBOX_BLOCK
from trebuchet.cores.services.smp_registers import SMP_BLOCK
from trebuchet.models.ecg import model
from trebuchet.models.ecg.synthetic import synthesise
from trebuchet.models.status import Status
from trebuchet.soc.csr_export import register_offsets, register_words

SAMPLES, _, _ = synthesise(3.0, seed=7)
LEASE, GUARD = (SMP_BASE + register_offsets(SMP_BLOCK)[name] for name in ("lease", "guard"))


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    return build_manage(root, tmp_path_factory.mktemp("manage"))


@pytest.fixture(scope="module")
def smp_lib(root, tmp_path_factory):
    """Of a board with a TCP port for SMP messages."""
    return build_manage(root, tmp_path_factory.mktemp("manage_smp"), ring=2048)


class RoleModel:
    """The registers of a role slot, and the ECG role as its golden model."""

    def __init__(self):
        offsets = register_offsets(ROLE)
        self.at = {ROLE_BASE + offset: name for name, offset in offsets.items()}
        self.regs = dict.fromkeys(offsets, 0)
        self.wait = 0  # accesses until the job is done; None: it never is

    def read(self, address):
        name = self.at.get(address, "high")
        if name == "busy" and self.regs["busy"] and self.wait is not None:
            self.wait -= 1
            if self.wait < 0:
                self._finish()
        return self.regs.get(name, 0)

    def write(self, address, value):
        name = self.at.get(address, "high")
        if name == "start" and value & 1:
            self.regs["busy"] = 1
            self.wait = None if self.wait is None else 3
        elif name == "reset" and self.regs["busy"]:
            self.regs |= {"busy": 0, "result_status": int(Status.ABORTED), "result_length": 0}
            self.wait = 0
        elif name == "interrupt_status":
            self.regs[name] &= ~value
        elif name != "high":
            self.regs[name] = value

    def _finish(self):
        regs = self.regs
        operand = ctypes.string_at(regs["operand_addr"], regs["operand_length"])
        status, result = Status.OK, b""
        if len(operand) % 2 or not model.MIN_SAMPLES <= len(operand) // 2 <= model.MAX_SAMPLES:
            status = Status.BAD_LENGTH
        else:
            result = model.classify_block(numpy.frombuffer(operand, "<i2"))
            if len(result) > regs["result_room"]:
                status, result = Status.NO_ROOM, b""
        ctypes.memmove(regs["result_addr"], result, len(result))
        regs |= {"busy": 0, "result_status": int(status), "result_length": len(result)}
        regs["interrupt_status"] = 3


class BusFirmware(Firmware):
    """Carries out the register accesses of the C code."""

    def __init__(self, csr, rng, lib):
        super().__init__(csr, rng)
        self.lib, self.role, self.stopped = lib, RoleModel(), False
        self.asked, self.told = queue.Queue(), queue.Queue()
        self.cycles = 1  # of an access
        self.framer = {}
        self.sends = [0]  # answers and invitations in each round of the event loop
        self.names = {
            MAILBOX_BASE + offset: register
            for register in MAILBOX_BLOCK.registers
            for offset in [register_offsets(MAILBOX_BLOCK)[register.name]]
            if len(register_words(register)) == 1
        }
        bus_functions(lib, lambda address: self.ask(address, None), self.ask)
        self.uptime = ctypes.c_uint32.in_dll(lib, "host_uptime_ms")
        self.thread = threading.Thread(target=self.loop, daemon=True)

    def loop(self):
        self.lib.mailbox_start()
        while not self.stopped:
            self.lib.mailbox_serve()
            self.ask(None, None)

    def ask(self, address, value):
        """In the C code's thread: an access, or with no address the end of a round."""
        if self.stopped:
            return 0
        self.asked.put((address, value))
        return self.told.get()

    def stop(self):
        self.stopped = True
        self.told.put(0)
        self.thread.join(10)
        assert not self.thread.is_alive(), "the firmware hangs"

    def log(self):
        return ctypes.string_at(self.lib.host_log).decode()

    async def access(self, ctx, address, value):
        if address >= ROLE_BASE:
            return self.role.read(address) if value is None else self.role.write(address, value)
        register = self.names.get(address)
        if register is None:  # of the SMP framer: as it was written
            if value is not None:
                self.framer[address] = value
            return self.framer.get(address, 0)
        if register.name == "send":
            self.sends[-1] += 1
        if value is None:
            return ctx.get(getattr(self.csr, register.name))
        return await self.write(ctx, register.name, value, strobe=register.access == "stb")

    async def __call__(self, ctx):
        self.thread.start()
        while True:
            address, value = self.asked.get()
            await self.pause(ctx, self.cycles if address else self.rng.randint(5, 40))
            if address is None:
                self.uptime.value += 10
                self.sends.append(0)
            self.told.put((address and await self.access(ctx, address, value)) or 0)


class ManageBench(Bench):
    def __init__(self, seed, lib):
        super().__init__(seed)
        self.responder.latency = self.responder.write_latency = (2, 8)
        self.cpu = BusFirmware(self.dut.csr, self.cpu.rng, lib)

    def run(self, conns, *others, limit=400_000):
        try:
            super().run(conns, *others, limit=limit)
        finally:
            self.cpu.stop()


class Late(Connection):
    """Sends nothing until ``begins()``."""

    def __init__(self, payload, begins):
        self.begins = begins
        super().__init__(payload, fin=lambda c: begins() and c.delivered == len(payload))

    @property
    def payload(self):
        return self._payload if self.begins() else b""

    @payload.setter
    def payload(self, payload):
        self._payload = payload


def command(line):
    return Message(MessageType.COMMAND, line).pack()


def configuration(*controls, image=b"", sizes=(0, 0)):
    cores = tuple(Core(control, 0, 0) for control in controls)
    return Configuration(*sizes, cores, image).message().pack()


def refused(status, id=0):
    return Message(MessageType.RESPONSE, struct.pack("<B3xI", status, id))


def converse(lib, *streams, seed=1, **options):
    """What connections get that send all at once; and the bench."""
    bench = ManageBench(seed, lib)
    conns = [Connection(stream, **options) for stream in streams]
    bench.run(conns)
    assert all(conn.ok for conn in conns)
    return [Decoder().feed(conn.received) for conn in conns], bench


def test_twenty_commands_then_a_page(lib):
    lines = [b"line %d" % i + b"x" * (5 * i) for i in range(20)]
    page = b"GET /status HTTP/1.1\r\nHost: board\r\n\r\n"
    bench = ManageBench(1, lib)
    conn = Connection(b"".join(map(command, lines)) + page, chunk=30)
    bench.run([conn])
    head = conn.received.index(b"HTTP/1.1 200 ")
    replies = Decoder().feed(conn.received[:head])
    assert [parse_reply(r.payload) for r in replies] == [(0, line.decode()) for line in lines]
    body = conn.received[head:].partition(b"\r\n\r\n")[2]
    assert json.loads(body)["engines"]["mailbox"]["requests"] == 41


def test_head_has_the_length_of_the_page_and_no_body(lib):
    """RFC 9110, 9.3.2, also of what is refused."""
    for target in (b"/status", b"/nothing"):
        heads, bodies = [], []
        for method in (b"GET", b"HEAD"):
            conn = Connection(method + b" " + target + b" HTTP/1.1\r\nHost: b\r\n\r\n", chunk=30)
            ManageBench(1, lib).run([conn])
            head, _, body = conn.received.partition(b"\r\n\r\n")
            heads.append(head)
            bodies.append(body)
        lengths = [int(head.rpartition(b"Content-Length:")[2]) for head in heads]
        assert lengths[0] == len(bodies[0])
        # The second page counts the first one: a counter may have got a digit more.
        assert lengths[0] <= lengths[1] <= lengths[0] + (3 if target == b"/status" else 0)
        assert heads[0].split()[:2] == heads[1].split()[:2]
        assert bodies[1] == b""


def test_commands_of_every_outcome(lib):
    stream = command(b"fly") + command(b"") + command(b"fill") + command(b"x" * 128)
    (answers,), bench = converse(lib, stream)
    assert parse_reply(answers[0].payload) == (10, "error: UNKNOWN_COMMAND\n")
    assert parse_reply(answers[1].payload) == (0, "")
    status, text = parse_reply(answers[2].payload)
    assert (status, len(text)) == (0, 3904)
    assert text == "".join(chr(ord("a") + i % 23) for i in range(3904))
    assert answers[3:] == [refused(Status.TOO_LARGE)]
    assert ": UNKNOWN_COMMAND\n" in bench.cpu.log(), "a line in the log as well"
    assert bench.cpu.log().endswith(": TOO_LARGE\n")


def test_windows_of_ecg(lib):
    blocks = [SAMPLES[:count].astype("<i2") for count in (64, 510)]
    stream = b"".join(data_message(i, block.tobytes()).pack() for i, block in enumerate(blocks))
    (answers,), bench = converse(lib, stream + data_message(9, b"abc").pack() + command(b"on"))
    for number, block in enumerate(blocks):
        assert answers[number] == data_message(number, model.classify_block(block))
    assert answers[2] == refused(Status.BAD_LENGTH, 9)
    assert parse_reply(answers[3].payload) == (0, "on")
    assert bench.cpu.role.regs["interrupt_status"] == 0


def test_a_configuration_with_sizes(lib):
    window = SAMPLES[:300].astype("<i2").tobytes()
    stream = configuration(ROLE_BASE + 4) + configuration(ROLE_BASE, sizes=(len(window), 8))
    stream += data_message(1, window).pack() + data_message(2, window[2:]).pack()
    (answers,), bench = converse(lib, stream)
    assert answers == [
        refused(Status.BAD_DATA),
        refused(Status.OK),
        refused(Status.NO_ROOM, 1),
        refused(Status.BAD_LENGTH, 2),
    ]
    assert bench.cpu.role.regs["enable"] == 1
    assert "configured: ecg, operands 600, results 8, image 0\n" in bench.cpu.log()


def test_an_image_without_a_flash(lib):
    """It is in memory, whole, when it is judged."""
    image = bytes(i * 7 % 251 for i in range(1500))
    (answers,), _ = converse(lib, configuration(ROLE_BASE, image=image) + command(b"on"))
    assert answers[0] == refused(Status.NOT_BUILT_IN)
    assert answers[1].kind == MessageType.REPLY
    assert ctypes.string_at(IMAGE_AT, len(image)) == image


@pytest.mark.parametrize("cut", [3, 8, 20, 1032])
def test_a_truncated_configuration_and_the_next(lib, cut):
    message = configuration(ROLE_BASE, image=bytes(1200))
    (answers, after), bench = converse(lib, message[:cut], b"")
    assert (answers, after) == ([refused(Status.TRUNCATED)], [])
    assert bench.cpu.log().count("TRUNCATED") == 1
    (answers,), _ = converse(lib, configuration(ROLE_BASE))
    assert answers == [refused(Status.OK)]


def test_a_second_configuration_is_refused(lib):
    bench = ManageBench(1, lib)
    message = configuration(ROLE_BASE, image=bytes(1500))
    first = Connection(message[:1200], fin=lambda c: second.ok)
    second = Late(message, lambda: first.freed == 1032)
    late = Connection(command(b"on"))
    bench.run([first, late, second])
    answers = [Decoder().feed(conn.received) for conn in (first, late, second)]
    assert answers[0] == [refused(Status.TRUNCATED)]
    assert answers[1][0].kind == MessageType.REPLY
    assert answers[2] == [refused(Status.BUSY)]


def test_a_guard_refuses_configurations_of_another_epoch_and_all_data(smp_lib):
    """Commands go on; a configuration that began under another lease ends with its next piece."""
    good = Message(MessageType.CONFIGURATION, configuration(ROLE_BASE)[8:], epoch=7).pack()
    window = data_message(5, bytes(200), epoch=7).pack()
    bench = ManageBench(1, smp_lib)
    bench.cpu.framer |= {LEASE: 7, GUARD: 1}
    conns = [
        Connection(command(b"on") + window + good + configuration(ROLE_BASE)),
        Connection(Message(MessageType.CONFIGURATION, bytes(12), epoch=8).pack()),
    ]
    bench.run(conns)
    first, second = (Decoder().feed(conn.received) for conn in conns)
    assert first[0].kind == MessageType.REPLY
    assert first[1:] == [refused(Status.STALE, 5), refused(Status.OK), refused(Status.STALE)]
    assert second == [refused(Status.STALE)]
    assert bench.cpu.role.regs["operand_length"] == 0


def test_a_new_lease_ends_a_configuration_on_its_way(smp_lib):
    image = configuration(ROLE_BASE, image=bytes(1500))
    bench = ManageBench(1, smp_lib)
    half, whole = bytearray(image), bytearray(image)
    half[2], whole[2] = 7, 8

    rounds = []  # of the event loop, since the first piece was taken

    def raised():
        if old.freed == 1032:
            rounds.append(len(bench.cpu.sends))
            if rounds[-1] > rounds[0] + 2:
                bench.cpu.framer[LEASE] = 8
        return bench.cpu.framer[LEASE] == 8

    old = Connection(bytes(half[:1200]), fin=lambda c: False, chunk=1200)
    new = Late(bytes(whole), raised)
    bench.cpu.framer |= {LEASE: 7, GUARD: 1}
    old.vanish = lambda c: new.ok
    bench.run([old, new])
    assert Decoder().feed(new.received) == [refused(Status.NOT_BUILT_IN)], "not BUSY"
    assert "given up for another" in bench.cpu.log()


def test_a_role_that_never_answers_is_reset(lib):
    bench = ManageBench(1, lib)
    bench.cpu.role.wait = None
    conn = Connection(data_message(5, bytes(200)).pack() + command(b"on"))
    bench.run([conn])
    answers = Decoder().feed(conn.received)
    assert parse_response(answers[0].payload).status == Status.ABORTED
    assert answers[1].kind == MessageType.REPLY
    assert "0 smp: a role does not answer; it is reset\n" in bench.cpu.log()


def test_clients_in_a_row_do_not_keep_the_event_loop(lib):
    """On a slow bus the next request is there before the firmware looks again."""
    bench = ManageBench(1, lib)
    bench.cpu.cycles = 40
    bench.run([Connection(command(b"on")) for _ in range(4)])
    assert sum(bench.cpu.sends) == 4 * 2, "a header and a command each"
    assert max(bench.cpu.sends) == 1


@pytest.mark.parametrize("seed", range(2))
def test_clients_of_all_kinds(lib, seed):
    """Some vanish; nobody else notices, and every session is given back."""
    bench = ManageBench(seed, lib)
    rng, conns = bench.rng, []
    window = SAMPLES[:64].astype("<i2")
    for number in range(5):
        stream = rng.choice(
            [
                command(b"a%d" % number) * 3,
                data_message(number, window.tobytes()).pack(),
                b"GET /status HTTP/1.1\r\nHost: b\r\n\r\n",
                configuration(ROLE_BASE, image=bytes(1100)),
                struct.pack("<B3xI", 7, 9) + bytes(9),
            ]
        )
        conn = Connection(stream, chunk=rng.choice([9, 100]))
        if rng.random() < 0.3:
            limit = rng.randrange(len(stream))
            conn.vanish = lambda c, limit=limit: c.delivered >= limit
        conns.append(conn)
    last = Connection(command(b"last"))
    bench.run([*conns, last])
    assert parse_reply(Decoder().feed(last.received)[0].payload) == (0, "last")
    assert all(conn.released for conn in conns)
    assert all(conn.ok or conn.gone for conn in conns)


@pytest.mark.parametrize(
    ("sent", "id"),
    [
        (command(b"status")[:5], 0),
        (command(b"status")[:9], 0),
        (configuration(ROLE_BASE, image=bytes(1200))[:300], 0),
        (data_message(77, bytes(40)).pack()[:8], 0),
        (data_message(77, bytes(40)).pack()[:20], 77),
    ],
)
def test_a_message_whose_rest_does_not_come(lib, sent, id):
    bench = ManageBench(1, lib)
    half = Connection(sent, fin=lambda c: c.got_fin)
    other = Connection(command(b"on"))
    bench.run([half, other], sweeping(bench.dut, 2000))
    assert Decoder().feed(half.received) == [refused(Status.TIMED_OUT, id)]
    assert Decoder().feed(other.received)[0].kind == MessageType.REPLY
    assert bench.cpu.log().count("TIMED_OUT") == 1


@pytest.mark.parametrize("sent", [b"G", b"GET /status HTTP/1.1\r\nHost: a\r\n"])
def test_a_page_whose_request_does_not_end(lib, sent):
    bench = ManageBench(1, lib)
    half = Connection(sent, fin=lambda c: c.got_fin)
    other = Connection(b"GET /status HTTP/1.0\r\n\r\n")
    bench.run([half, other], sweeping(bench.dut, 2000))
    head, _, body = half.received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"Connection: close" in head
    assert "in time" in json.loads(body)["error"]
    assert other.received.startswith(b"HTTP/1.1 200 ")
