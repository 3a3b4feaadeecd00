"""What lies inside a core, by name: registers, states and memories that are no attributes of it.

Properties are about ports. The invariants that make them inductive speak about registers, many of
which are local to a core's ``elaborate``; :class:`Inside` elaborates the core and finds them there.
"""

from contextlib import contextmanager

from amaranth.hdl import Elaboratable, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .internals import driven_signals, mark_used, state_machines, submodules

__all__ = ["Inside", "RegisterFifo", "RegisterStreamFifo", "opened", "patched", "replaced"]


class Inside:
    """Elaborates ``dut``, or takes the module it gave, as a part of ``m``.

    Its signals are attributes; ``parts`` are its submodules by name. A struct is a plain signal.
    """

    def __init__(self, m, dut, name="dut"):
        module = dut
        if not isinstance(dut, Module):
            module = dut.elaborate("formal")
            mark_used(dut)  # the module is added in its place
        m.submodules[name] = module
        self._fsms = state_machines(module)
        self._signals = {}
        for signal in driven_signals(module):
            self._signals.setdefault(signal.name, []).append(signal)
        self.parts = submodules(module)[0]

    def __getattr__(self, name):
        return self.signal(name)

    def signal(self, name, number=0):
        """A signal by name; of several with one name the one that is driven as ``number``."""
        if name not in self._signals:
            raise AttributeError(f"no signal {name!r}; there are: {', '.join(self._signals)}")
        return self._signals[name][number]

    def unnamed(self, number):
        """One of the signals that have no name of their own."""
        return self.signal("$signal", number)

    def state(self, name, fsm="fsm"):
        """Whether state machine ``fsm`` is in state ``name``."""
        return self._fsms[fsm].ongoing(name)

    def fsm_bounded(self, fsm="fsm"):
        """Whether the state register holds the number of a state."""
        machine = self._fsms[fsm]
        return machine.state < len(machine.encoding)


def opened(core):
    """A subclass of ``core``, elaborated as it is made: ``inside`` is its :class:`Inside`."""

    class Opened(core):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.module = Module()
            self.inside = Inside(self.module, super().elaborate("formal"), name="core")

        def elaborate(self, platform):
            return self.module

    return Opened


class RegisterFifo(Elaboratable):
    """A FIFO of registers in the place of one in RAM, whose cells invariants can see.

    It keeps the contract of Amaranth's FIFOs and no more: a word shows up at the output as soon as
    it is first in line and ``shows`` was 1, which a harness leaves to the solver; then it stays.
    """

    def __init__(self, *, width, depth, lut_ram=0):
        del lut_ram
        self.width, self.depth = width, depth
        self.w_data, self.r_data = Signal(width), Signal(width)
        self.w_en, self.w_rdy, self.r_en, self.r_rdy = Signal(), Signal(), Signal(), Signal()
        self.level = Signal(range(depth + 1))
        self.cells = [Signal(width, name=f"cell{k}") for k in range(depth)]
        self.shows, self.shown = Signal(init=1), Signal()

    def elaborate(self, platform):
        m = Module()
        puts, gets = self.w_en & self.w_rdy, self.r_en & self.r_rdy
        m.d.comb += [
            self.w_rdy.eq(self.level != self.depth),
            self.r_rdy.eq((self.level != 0) & (self.shows | self.shown)),
            self.r_data.eq(self.cells[0]),
        ]
        m.d.sync += [self.level.eq(self.level + puts - gets), self.shown.eq(self.r_rdy & ~gets)]
        with m.If(gets):
            m.d.sync += [a.eq(b) for a, b in zip(self.cells, self.cells[1:], strict=False)]
        for k, cell in enumerate(self.cells):
            with m.If(puts & (self.level - gets == k)):
                m.d.sync += cell.eq(self.w_data)
        return m


class RegisterStreamFifo(wiring.Component):
    """A :class:`RegisterFifo`, ``fifo``, in the place of a ``StreamFifo``."""

    def __init__(self, shape, depth):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})
        self.fifo = RegisterFifo(width=len(Value.cast(self.i.payload)), depth=depth)

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = self.fifo
        m.d.comb += [
            fifo.w_data.eq(Value.cast(self.i.payload)),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            Value.cast(self.o.payload).eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
        ]
        return m


@contextmanager
def patched(module, **names):
    """Other values for a module's names, for the time in which a core is elaborated: small sizes,
    or an abstraction in the place of a part that has a proof of its own."""
    kept = {name: getattr(module, name) for name in names}
    try:
        for name, value in names.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in kept.items():
            setattr(module, name, value)


@contextmanager
def replaced(module, names, fill, parts):
    """For a time, have ``module`` make parts whose body is what ``fill(m, name, part)`` adds.

    ``names``: of the parts' classes in the module; each part that is made is put into the list
    ``parts[name]``.
    """

    def make(name, cls):
        def elaborate(self, platform):
            m = Module()
            fill(m, name, self)
            return m

        def construct(*args, **options):
            part = type(name, (cls,), {"elaborate": elaborate})(*args, **options)
            parts.setdefault(name, []).append(part)
            return part

        return construct

    with patched(module, **{name: make(name, getattr(module, name)) for name in names}):
        yield
