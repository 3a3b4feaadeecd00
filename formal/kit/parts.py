"""Cores opened up for a proof: parts taken out, constants made small, insides looked at.

A core that is made of parts, each proved by itself, is proved with the parts left out: a part that
is *hollow* keeps its ports, but drives them with whatever the solver likes, and the harness assumes
of them no more than the part's own proof asserts. So the property holds for any parts that keep
their contracts, which is how the proofs compose; and no memory or multiplier is in the way.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Const, Elaboratable, Fragment, Module, Value
from amaranth.lib.wiring import Out

from .internals import is_used, mark_used, state_register

__all__ = ["Opened", "hollow", "moves", "same", "same_memory"]


def hollow(component):
    """Empty a component: each of its outputs is the solver's choice, in every cycle anew."""

    def elaborate(platform):
        m = Module()
        for _, member, port in component.signature.flatten(component):
            raw = Value.cast(port)
            # A stream that is always ready says so by a constant.
            if member.flow is Out and len(raw) and not isinstance(raw, Const):
                m.d.comb += raw.eq(AnySeq(len(raw)))
        return m

    component.elaborate = elaborate
    _spare(component)
    return component


def _spare(component):
    """Parts that it has made already are left out on purpose: no warning that they are unused."""
    for made in getattr(component, "__dict__", {}).values():
        for part in made if isinstance(made, list | tuple) else (made,):
            if isinstance(part, Elaboratable) and not is_used(part):
                mark_used(part)
                _spare(part)


class Opened:
    """A core, elaborated within its module with some of the module's names replaced.

    ``hollowed``: names of classes whose instances are made hollow; ``watched``: those that stay as
    they are. Both are found afterwards in ``made``, in the order in which the core made them.
    ``constants``: values for other names of the module. ``helpers``: classes by which the core
    makes some of its parts; their modules' names count, too. ``fragment`` is what becomes the
    submodule.
    """

    def __init__(self, module, core, platform, *, hollowed=(), watched=(), helpers=(), **constants):
        self.core = core
        self.made = {name: [] for name in (*hollowed, *watched)}
        spaces = [vars(module), *(vars(helper)["__init__"].__globals__ for helper in helpers)]
        home = {
            name: next(space for space in spaces if name in space)
            for name in (*self.made, *constants)
        }
        saved = {name: space[name] for name, space in home.items()}
        replaced = {name: self._maker(saved[name], name, name in hollowed) for name in self.made}
        try:
            for name, value in (replaced | constants).items():
                home[name][name] = value
            self.fragment = Fragment.get(core, platform)
        finally:
            for name, value in saved.items():
                home[name][name] = value

    def _maker(self, real, name, empty):
        def make(*args, **kwargs):
            part = real(*args, **kwargs)
            self.made[name].append(hollow(part) if empty else part)
            return part

        return make

    def part(self, name):
        """The only part made of that class."""
        (part,) = self.made[name]
        return part

    def state(self, name, fsm="fsm"):
        """Whether the core's state machine of that name is in the state of that name."""
        machine = self.fragment.find_generated(fsm)
        return state_register(machine) == machine.encoding[name]


def moves(stream):
    return stream.valid & stream.ready


def all_of(m, ours, theirs, check=Assert):
    """Two ports of the same members are one."""
    mine = {path: port for path, _, port in ours.signature.flatten(ours)}
    for path, _, port in theirs.signature.flatten(theirs):
        m.d.comb += check(Value.cast(mine[path]) == Value.cast(port))


def same(m, producer, consumer):
    """Two stream ports are one: ``consumer`` is offered what ``producer`` offers, and no else."""
    m.d.comb += [
        Assert(consumer.valid == producer.valid),
        Assert(producer.ready == consumer.ready),
        Assert(~producer.valid | (Value.cast(consumer.payload) == Value.cast(producer.payload))),
    ]


def same_memory(m, requester, responder):
    same(m, requester.cmd, responder.cmd)
    same(m, requester.wdata, responder.wdata)
    same(m, responder.rdata, requester.rdata)
    same(m, responder.wdone, requester.wdone)
