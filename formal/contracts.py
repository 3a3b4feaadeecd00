"""The ready/valid contract, of any component, on every stream of its signature.

:class:`ContractProof` walks the signature of a component: streams, arrays of streams, streams inside
nested interfaces such as memory ports. The solver drives every input freely, the streams within
the rules of :mod:`trebuchet.cores.stream`; every stream that goes out must keep those rules: the
offer stays until it is taken (rule 2), and packets begin and end as they should (rules 4 and 5).
For each of them a cover statement shows that a beat can move and one that a beat can be stalled.

Nothing here knows how a component is built, nor what it is for: it binds to any component with a
signature, also to somebody else's.

Not proved: rule 3 (how long a component waits is the subject of the proofs of its function); what
the streams carry; behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Assume, Const, Cover, Elaboratable, Value
from amaranth.lib import stream, wiring

from .proof import Proof
from .stream import free, new_harness, stream_rules

__all__ = ["ContractProof", "leaves_of", "streams_of"]

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


class ContractProof(Elaboratable):
    """Harness of one component. ``more(m, dut, begins)`` adds what its data sheet asks of the
    surroundings beyond the rules, and invariants; ``begins`` tells by the name of a packet stream
    whether its next beat is a first one. ``quiet`` names streams on which nothing ever happens.
    """

    def __init__(self, dut, more=None, quiet=()):
        self.dut, self.more, self.quiet = dut, more, quiet

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        begins = {}
        for _, port in leaves_of(dut, wiring.In):
            free(m, port)
        for name, port in streams_of(dut, wiring.In):
            free(m, *(s for s in (port.valid, port.payload) if not _constant(s)))
            begins[name] = _rules(m, port, Assume, name)
        for name, port in streams_of(dut, wiring.Out):
            if not _constant(port.ready):
                free(m, port.ready)
            begins[name] = _rules(m, port, Assert, name)
            if name not in self.quiet:
                m.d.comb += Cover(port.valid & port.ready)
                if not _constant(port.ready):
                    m.d.comb += Cover(port.valid & ~port.ready)
        if self.more is not None:
            self.more(m, dut, begins)
        return m


def _constant(signal):
    return isinstance(Value.cast(signal), Const)
