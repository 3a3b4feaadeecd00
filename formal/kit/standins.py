"""Looks inside cores, for the invariants that induction needs."""

from amaranth.hdl import Assume, Cat, Module, Signal

from ..stream import free
from .internals import state_register

__all__ = [
    "SyncFifoInside",
    "buffered_fifo_words",
    "elaborated",
    "only_part",
    "state_is",
    "stand_in",
]


def elaborated(core):
    """Elaborate ``core`` now; return the module, whose parts a harness can then name.

    The core is still to be made a submodule; it is not elaborated a second time.
    """
    inner = core.elaborate("formal")
    core.elaborate = lambda platform: inner
    return inner


def only_part(core):
    """A module for a part of ``core``, which stands for all of it when it is made a submodule."""
    part = Module()
    core.elaborate = lambda platform: part
    return part


class SyncFifoInside:
    """The words inside an Amaranth ``SyncFIFO``: ``peek(place)`` is the one ``place`` behind the
    head. One read port of the storage for each call."""

    def __init__(self, m, fifo):
        self.m, self.fifo = m, fifo
        self.storage = elaborated(fifo).submodules.storage
        (self.head,) = [port.addr for port in self.storage.read_ports]

    def peek(self, place):
        port = self.storage.read_port(domain="comb")
        self.m.d.comb += port.addr.eq((self.head + place) % self.fifo.depth)
        return port.data


def buffered_fifo_words(m, fifo):
    """Each place of an Amaranth ``SyncFIFOBuffered``, the first to leave first: whether a word is
    there, and which."""
    storage = elaborated(fifo).submodules.storage
    (port,) = storage.read_ports
    head, level = port.addr, fifo.level - fifo.r_rdy
    words = [(fifo.r_rdy, fifo.r_data)]
    for place in range(storage.depth):
        peek = storage.read_port(domain="comb")
        m.d.comb += peek.addr.eq((head + place) % storage.depth)
        words.append((level > place, peek.data))
    return words


def stand_in(m, fifo):
    """Put anything in the place of a FIFO that keeps its handshake: a head that waits stays."""
    only_part(fifo)
    waits, head = Signal(), Signal.like(fifo.r_data)
    free(m, fifo.w_rdy, fifo.r_rdy, fifo.r_data)
    m.d.sync += [waits.eq(fifo.r_rdy & ~fifo.r_en), head.eq(fifo.r_data)]
    m.d.comb += Assume(~waits | (fifo.r_rdy & (fifo.r_data == head)))


def state_is(fsm, *names):
    """Whether an FSM is in one of these states. Amaranth has no public name for the register."""
    return Cat(state_register(fsm) == fsm.encoding[name] for name in names).any()
