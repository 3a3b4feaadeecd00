"""The firmware's end of the SMP framer, compiled for this machine, behind framer and window.

The C code runs in a thread; each register access waits until the simulation has carried it out. The
session's ring is copied to where the C code reads it when it asks for an address.
"""

import ctypes
import queue
import threading

import pytest
from manage_lib import (
    BOARD_BASE,
    IMAGE_AT,
    RING_AT,
    ROLE_BASE,
    SMP_BASE,
    build_manage,
    bus_functions,
)
from service_model import Connection
from streams import seeds
from test_services_fence import stamped
from test_services_framer import SEGMENT, work
from test_services_late import sweeping
from test_services_smp_board import Bench, configuration
from trebuchet.client.smp import Configuration, Core
from trebuchet.cores.services.smp_board import BOARD_BLOCK
from trebuchet.cores.services.smp_registers import SMP_BLOCK
from trebuchet.models.smp_framing import data_message, error_message
from trebuchet.models.status import Status
from trebuchet.soc.csr_export import register_offsets

NAMES = {BOARD_BASE + offset: name for name, offset in register_offsets(BOARD_BLOCK).items()}
FRAMERS = {SMP_BASE + offset: name for name, offset in register_offsets(SMP_BLOCK).items()}


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    return build_manage(root, tmp_path_factory.mktemp("smp"), ring=SEGMENT)


class CpuModel:
    """Carries out the C code's register accesses at the window; others are as before."""

    background = True

    def __init__(self, dut, memory, rng, lib):
        self.dut, self.memory, self.rng, self.lib = dut, memory, rng, lib
        self.stopped, self.enabled, self.parts = False, 0, {}
        self.asked, self.told = queue.Queue(), queue.Queue()
        bus_functions(lib, lambda address: self.ask(address, None), self.ask)
        self.uptime = ctypes.c_uint32.in_dll(lib, "host_uptime_ms")
        self.thread = threading.Thread(target=self.loop, daemon=True)

    def loop(self):
        self.lib.manage_start()
        while not self.stopped:
            if self.lib.manage_serve():
                self.lib.smp_serve()
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
        if address in FRAMERS:
            return ctx.get(getattr(self.dut.framer.csr, FRAMERS[address]))
        name = NAMES.get(address)
        if name is None:
            self.enabled += address >= ROLE_BASE and value == 1
            return 0
        signal = getattr(self.dut.board, name)
        if value is None:
            found = ctx.get(signal)
            return self.ring(found) if name == "address" else found
        ctx.set(signal, value)
        await ctx.tick()
        if name == "answer":
            ctx.set(signal, 0)
        return 0

    def ring(self, address):
        start = address & -SEGMENT
        ctypes.memmove(RING_AT, bytes(self.memory[start : start + SEGMENT]), SEGMENT)
        return RING_AT + address - start

    async def __call__(self, ctx):
        self.thread.start()
        while True:
            address, value = self.asked.get()
            for _ in range(1 if address else self.rng.randint(5, 40)):
                await ctx.tick()
            self.uptime.value += address is None
            self.told.put((address and await self.access(ctx, address, value)) or 0)


class SmpBench(Bench):
    def __init__(self, seed, lib, **options):
        super().__init__(seed, **options)
        self.cpu = CpuModel(self.dut, self.memory, self.cpu.rng, lib)

    def run(self, conns, *others):
        try:
            super().run(conns, *others, limit=400_000)
        finally:
            self.cpu.stop()


def for_cores(*controls, image=b""):
    cores = tuple(Core(control, 0, 0) for control in controls)
    return Configuration(0, 0, cores, image).message().pack()


def result(ident, operand):
    assert work(ident, operand)[0] == Status.OK
    return data_message(ident, work(ident, operand)[1])


@seeds(2)
def test_configurations_and_what_is_behind_them(lib, seed):
    """The response comes first; a core gives its role; what is refused changes nothing."""
    bench = SmpBench(seed, lib, roles=(1,), count=2)
    good, wrong = for_cores(ROLE_BASE), for_cores(ROLE_BASE + 4)
    streams = [
        (good + data_message(1, b"abc"), error_message(Status.OK) + result(1, b"abc")),
        (wrong + data_message(2, b"abc"), error_message(Status.BAD_DATA) + result(2, b"abc")),
        (configuration(b"") + configuration(b"ab"), 2 * error_message(Status.BAD_LENGTH)),
        (configuration(bytes(16)), error_message(Status.NOT_BUILT_IN)),  # no benchmark role
    ]
    for payload, _ in streams:  # one after the other: another would be BUSY
        bench.waits = payload
    conns = [Connection(payload) for payload, _ in streams]
    for before, conn in zip(conns, conns[1:], strict=False):
        hold(conn, before)
    bench.run(conns)
    assert [conn.received for conn in conns] == [answers for _, answers in streams]
    assert bench.role.roles == {1: 0, 2: 1}
    assert bench.cpu.enabled >= 1


def hold_until(conn, begins):
    """Send nothing, FIN included, before ``begins()``."""
    payload, conn.payload = conn.payload, b""
    fin = conn.fin

    def asked(c):
        if begins() and not c.payload:
            c.payload = payload
        return bool(c.payload) and fin(c)

    conn.fin = asked


def hold(conn, before):
    """Send nothing before another connection is over."""
    hold_until(conn, lambda: before.released)


@seeds(2)
def test_an_image_larger_than_the_ring(lib, seed):
    """It lies in memory, whole, however the ring's end cuts it."""
    bench = SmpBench(seed, lib)
    image = bench.rng.randbytes(2777)
    conn = Connection(data_message(1, b"x" * 99) + for_cores(image=image) + data_message(2, b"y"))
    bench.run([conn])
    refused = error_message(Status.NOT_BUILT_IN)
    assert conn.received == result(1, b"x" * 99) + refused + result(2, b"y")
    assert ctypes.string_at(IMAGE_AT, len(image)) == image


def test_messages_that_do_not_end(lib):
    """Time, FIN, RST, no end: one status each, and then another is taken."""
    begun = for_cores(image=bytes(900))[:500]
    endless = b"\1\0\0\0\xff\xff\xff\xff" + bytes(99)
    conns = [
        Connection(begun, fin=lambda c: c.got_fin),
        Connection(begun),
        Connection(begun, fin=lambda c: False, vanish=lambda c: c.freed > 8),
        Connection(endless),
        Connection(for_cores(ROLE_BASE)),
    ]
    for before, conn in zip(conns, conns[1:], strict=False):
        hold(conn, before)
    bench = SmpBench(1, lib)
    bench.run(conns, sweeping(bench.dut, 6000))
    assert [conn.received for conn in conns] == [
        error_message(Status.TIMED_OUT),
        error_message(Status.TRUNCATED),
        b"",
        error_message(Status.TOO_LARGE),
        error_message(Status.OK),
    ]
    for status in ("TIMED_OUT", "TRUNCATED", "ABORTED", "TOO_LARGE"):
        assert bench.cpu.log().count(f": {status}\n") == 1


def test_one_at_a_time(lib):
    """A second one is BUSY as long as the first is not over."""
    bench = SmpBench(2, lib)
    first = Connection(for_cores(image=bytes(900))[:500], fin=lambda c: second.got_fin)
    second = Connection(for_cores(ROLE_BASE), fin=lambda c: c.got_fin)
    hold_until(second, lambda: first.freed > 8)
    bench.run([first, second])
    assert second.received == error_message(Status.BUSY)
    assert first.received == error_message(Status.TRUNCATED)


def test_a_new_lease_ends_a_configuration_on_its_way(lib):
    """The framer lets the rest of it pass; the firmware refuses it, and takes the new holder's."""
    bench = SmpBench(1, lib)
    csr = bench.dut.framer.csr
    image = for_cores(ROLE_BASE, image=bytes(1100))
    old = Connection(stamped(image, 7), chunk=100, fin=lambda c: False)
    new = Connection(stamped(for_cores(ROLE_BASE), 8) + data_message(1, b"abc", epoch=8))
    late = Connection(data_message(2, b"abc", epoch=7))
    for conn in (new, late):
        hold(conn, old)

    async def raises(ctx):
        ctx.set(csr.lease, 7)
        ctx.set(csr.guard, 1)
        while old.freed < 200:
            await ctx.tick()
        ctx.set(csr.lease, 8)

    old.vanish = lambda c: c.got_fin
    bench.run([old, new, late], raises)
    assert old.received == error_message(Status.STALE)
    assert new.received == error_message(Status.OK) + result(1, b"abc")
    assert late.received == error_message(Status.STALE, 2)
