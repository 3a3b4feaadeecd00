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

from amaranth.hdl import Assert, Assume, Const, Cover, Elaboratable, Module, Value
from amaranth.lib import stream, wiring

from .stream import free, new_harness, stream_rules

__all__ = ["ContractProof", "Inside", "leaves_of", "streams_of"]

WRITE_FIELDS = {"data", "strb", "last"}


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
    """The rules of one stream; of a memory's write data bytes without strobe mean nothing."""
    members = getattr(getattr(port.payload, "shape", lambda: None)(), "members", {})
    if set(members) != WRITE_FIELDS:
        return stream_rules(m, port, check, name)
    meant = stream.Signature(port.payload.shape()).create(path=(f"{name}_meant",))
    m.d.comb += [meant.valid.eq(port.valid), meant.ready.eq(port.ready)]
    m.d.comb += meant.payload.eq(port.payload)
    for k, strobe in enumerate(port.payload.strb):
        with m.If(~strobe):
            m.d.comb += meant.payload.data[8 * k : 8 * k + 8].eq(0)
    return stream_rules(m, meant, check, name)


class Inside:
    """A component, elaborated as part of ``m``, its parts hollow but for those in ``keep``.

    Attributes: ``parts`` by name; ``begins``, by name of a packet stream (of a part: ``part.name``)
    whether its next beat is a first one. Signals driven by the component are found by name with
    ``inside["name"]``, whether its state machine is in a state with :meth:`state`.
    """

    def __init__(self, m, dut, keep=()):
        module = dut.elaborate("formal")
        dut._MustUse__used = True  # the module is added in its place
        m.submodules.dut = module
        self.module, self.begins = module, {}
        named = {name: part for name, (part, _) in module._named_submodules.items()}
        anonymous = {f"part{k}": part for k, (part, _) in enumerate(module._anon_submodules)}
        self.parts = named | anonymous
        for name, part in self.parts.items():
            if isinstance(part, wiring.Component) and name not in keep and keep != "all":
                self._hollow(m, name, part)

    def _hollow(self, m, name, part):
        part.elaborate = lambda platform: Module()
        _drive(m, *(port for _, port in leaves_of(part, wiring.Out)))
        for flow, check in ((wiring.Out, Assume), (wiring.In, Assert)):
            for port_name, port in streams_of(part, flow):
                _drive(m, *((port.valid, port.payload) if flow is wiring.Out else (port.ready,)))
                prefix = f"{name}.{port_name}"
                self.begins[prefix] = _rules(m, port, check, prefix)

    def __getitem__(self, name):
        found = [signal for signal in self.module._driving if signal.name == name]
        if len(found) != 1:
            names = ", ".join(sorted({signal.name for signal in self.module._driving}))
            raise KeyError(f"{len(found)} signals {name!r}; there are: {names}")
        return found[0]

    def state(self, name, fsm="fsm"):
        return self.module._generated[fsm].ongoing(name)


class ContractProof(Elaboratable):
    """Harness of one component.

    ``more(m, dut, inside)`` adds what its data sheet asks of the surroundings beyond the rules, and
    invariants; ``keep`` names the parts that are not left out (``"all"``: none is); ``quiet`` names
    streams on which nothing ever happens, or which are never stalled.
    """

    def __init__(self, dut, more=None, *, keep=(), quiet=()):
        self.dut, self.more, self.keep, self.quiet = dut, more, keep, quiet

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        inside = Inside(m, dut, self.keep)
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
        if self.more is not None:
            self.more(m, dut, inside)
        return m
