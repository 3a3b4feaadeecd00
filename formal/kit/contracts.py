"""The ready/valid contract, of any component, on every stream of its signature.

:class:`ContractProof` walks the signature of a component: streams, arrays of streams, those inside
nested interfaces such as memory ports. The solver drives every input freely, the streams within
the rules of :mod:`trebuchet.cores.stream`; every stream that goes out must keep those rules: the
offer stays until it is taken (rule 2), and packets begin and end as they should (rules 4 and 5).
For each of them a cover statement shows that a beat can move and one that a beat can be stalled.

The proofs compose. A component's parts are left out (*hollow*): they keep their ports, but the
solver drives their outputs, streams within the rules, which each part's own proof promises for all
it may do inside; and on the streams into a part the rules are asserted, which that proof assumed.

Nothing here knows how a component is built, nor what it is for: it binds to any component with a
signature, also to somebody else's.

Not proved: rule 3 (how long a component waits is the subject of the proofs of its function); what
the streams carry; behaviour under a reset while running.
"""

import sys

from amaranth.hdl import (
    Assert,
    Assume,
    Cat,
    Const,
    Cover,
    Elaboratable,
    Module,
    Mux,
    Signal,
    Value,
)
from amaranth.lib import stream, wiring

from ..stream import free, new_harness, stream_rules
from .internals import mark_used, state_machines, submodules
from .proof import Proof

__all__ = ["ContractProof", "Inside", "contract", "leaves_of", "shown_last", "steady", "streams_of"]

WRITE_FIELDS = {"data", "strb", "last"}
VECTOR_FIELDS = {"value", "last", "index", "tag"}


def _walk(signature, interface, path=()):
    """Yield the name, what is there, and the member, of each stream and each other signal."""
    for name, member in signature.members.items():
        for index, part in _elements(getattr(interface, name), member.dimensions):
            here = (*path, name, *index)
            if member.is_port or isinstance(_plain(member.signature), stream.Signature):
                yield "_".join(here), part, member
            else:
                yield from _walk(member.signature, part, here)


def _elements(value, dimensions, index=()):
    if not dimensions:
        yield index, value
        return
    for k in range(dimensions[0]):
        yield from _elements(value[k], dimensions[1:], (*index, str(k)))


def _plain(signature):
    flipped = isinstance(signature, wiring.FlippedSignature)
    return signature.flip() if flipped else signature


def streams_of(component, flow):
    """Name and interface of each stream of ``component`` that flows ``In`` or ``Out``."""
    return [
        (name, part)
        for name, part, member in _walk(component.signature, component)
        if member.is_signature and member.flow is flow
    ]


def leaves_of(component, flow):
    """Name and signal of each port that belongs to no stream and flows ``In`` or ``Out``."""
    return [
        (name, part)
        for name, part, member in _walk(component.signature, component)
        if member.is_port and member.flow is flow
    ]


def _constant(signal):
    return isinstance(Value.cast(signal), Const)


def _drive(m, *signals):
    free(m, *(signal for signal in signals if not _constant(signal) and len(Value.cast(signal))))


def _rules(m, port, check, name):
    """The rules of one stream, but for what means nothing: it may change while it waits.

    Of a memory's write data the bytes without strobe; of ECG vectors the name that comes with the
    last value.
    """
    members = set(getattr(getattr(port.payload, "shape", lambda: None)(), "members", {}))
    if members not in (WRITE_FIELDS, VECTOR_FIELDS):
        return stream_rules(m, port, check, name)
    meant = stream.Signature(port.payload.shape()).create(path=(f"{name}_meant",))
    m.d.comb += [meant.valid.eq(port.valid), meant.ready.eq(port.ready)]
    m.d.comb += meant.payload.eq(port.payload)
    if members == VECTOR_FIELDS:
        with m.If(~port.payload.last):
            m.d.comb += [meant.payload.index.eq(0), meant.payload.tag.eq(0)]
    else:
        for k, strobe in enumerate(port.payload.strb):
            with m.If(~strobe):
                m.d.comb += meant.payload.data[8 * k : 8 * k + 8].eq(0)
    return stream_rules(m, meant, check, name)


class Inside:
    """A component, elaborated as part of ``m``, its parts hollow but for those in ``keep``.

    What a component calls its signals, in ``elaborate`` and the methods it is made of, is found by
    name: ``inside["name"]``. Further: ``parts`` by name; ``begins``, by name of a packet stream (of
    a part: ``part.name``) whether its next beat is a first one; :meth:`state`, of a state machine.
    On streams into parts in ``loose`` nothing is asserted.
    """

    def __init__(self, m, dut, keep=(), loose=()):
        module, self.locals = _elaborate(dut)
        m.submodules.dut = module
        self.module, self.begins = module, {}
        named, anonymous = submodules(module)
        self.parts = named | {f"part{k}": part for k, part in enumerate(anonymous)}
        for name, part in self.parts.items():
            if isinstance(part, wiring.Component) and name not in keep:
                self._hollow(m, name, part, name in loose)

    def _hollow(self, m, name, part, loose):
        part.elaborate = lambda platform: Module()
        _drive(m, *(port for _, port in leaves_of(part, wiring.Out)))
        for port_name, port in streams_of(part, wiring.Out):
            _drive(m, port.valid, port.payload)
            self.begins[f"{name}.{port_name}"] = _rules(m, port, Assume, f"{name}.{port_name}")
        for port_name, port in streams_of(part, wiring.In):
            _drive(m, port.ready)
            if not loose:
                self.begins[f"{name}.{port_name}"] = _rules(m, port, Assert, f"{name}.{port_name}")

    def __getitem__(self, name):
        return self.locals[name]

    def state(self, *names, fsm="fsm"):
        """Whether the state machine is in one of these states."""
        machine = state_machines(self.module)[fsm]
        return Cat(machine.ongoing(name) for name in names).any()


def _elaborate(dut):
    """The module of ``dut``, and the local names of the methods that made it."""
    names = {}

    def note(frame, event, _):
        if event == "return" and frame.f_locals.get("self") is dut:
            names.update(frame.f_locals)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        module = dut.elaborate("formal")
    finally:
        sys.setprofile(before)
    mark_used(dut)  # the module is added in its place
    return module, names


def shown_last(port, begins):
    """Whether a packet's last beat is the newest that ``port`` has shown: no packet is open."""
    return Mux(port.valid, port.payload.last, begins)


def steady(m, while_, *signals):
    """Assume that these do not change from a cycle in which ``while_`` holds to the next."""
    value = Cat(Value.cast(signal) for signal in signals)
    held, past = Signal(), Signal(len(value))
    m.d.sync += [held.eq(while_), past.eq(value)]
    with m.If(held):
        m.d.comb += Assume(value == past)


class ContractProof(Elaboratable):
    """Harness of one component.

    ``more(m, dut, inside)`` adds what its data sheet asks of the surroundings beyond the rules, and
    invariants; ``keep``, parts that are not left out; ``loose``, see :class:`Inside`; ``quiet``,
    streams on which nothing ever happens; ``through``, pairs of packet streams that are one.
    """

    def __init__(self, dut, more=None, *, keep=(), loose=(), quiet=(), through=()):
        self.dut, self.more, self.quiet, self.through = dut, more, quiet, through
        self.keep, self.loose = keep, loose

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        inside = Inside(m, dut, self.keep, self.loose)
        _drive(m, *(port for _, port in leaves_of(dut, wiring.In)))
        for name, port in streams_of(dut, wiring.In):
            _drive(m, port.valid, port.payload)
            inside.begins[name] = _rules(m, port, Assume, name)
        for name, port in streams_of(dut, wiring.Out):
            _drive(m, port.ready)
            inside.begins[name] = _rules(m, port, Assert, name)
            if name not in self.quiet:
                m.d.comb += Cover(port.valid & port.ready)
                if not _constant(port.ready):
                    m.d.comb += Cover(port.valid & ~port.ready)
        for source, sink in self.through:
            m.d.comb += Assert(inside.begins[source] == inside.begins[sink])
        if self.more is not None:
            self.more(m, dut, inside)
        return m


def contract(where, make, mutants, *, more=None, size="", **rest):
    """The proof of component ``where``, a path below ``cores``, that ``make`` builds of its class.

    ``size``: the parameters, for people. What remains goes to :class:`ContractProof` and
    :class:`~.proof.Proof`.
    """
    path, _, name = where.rpartition(".")
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
    area = path.split(".")[0]
    options = {k: rest.pop(k) for k in ("keep", "loose", "quiet", "through") if k in rest}
    defaults = {"depth": 2, "cover_depth": 6}

    def build(cores):
        return ContractProof(make(getattr(cores, name)), more, **options)

    build.__module__ = make.__module__  # the netlist depends on that one's source, too
    return Proof(
        name=f"contract_{area}_{snake}",
        core=f"cores.{where}({size})",
        says="every stream that goes out keeps the ready/valid contract, packets their borders",
        module=f"trebuchet.cores.{path}",
        build=build,
        mutants=mutants,
        **{"not_proved": "rule 3; what the streams carry; a reset while running"},
        **(defaults | rest),
    )
