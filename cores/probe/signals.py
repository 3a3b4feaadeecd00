"""Signals of a plan's probes: what a path such as ``tcp.tx_segment.payload.seq`` names.

A path begins with a part of the shell and goes on, dot by dot, through

- members of the part's signature: ports, streams, registers (``csr.retransmits``), and the
  number of an element where they are arrays;
- fields of a struct;
- attributes of a component that are signals or components when it is made, such as the ``role`` of
  a slot. What a component makes while it is elaborated has no path: the state of a state machine,
  local signals.

A path that ends at a group stands for all signals in it.
"""

from amaranth.hdl import Signal, Value
from amaranth.lib import data, wiring

from ...models.errors import TrebuchetError, did_you_mean
from .trace import MAX_WIDTH

__all__ = ["Probes", "find_signals"]

_SHOWN = 12


def _is_interface(thing):
    return hasattr(thing, "signature") and isinstance(thing.signature, wiring.Signature)


def _members(thing):
    """What a step of a path may lead to, by name."""
    if isinstance(thing, list | tuple):
        return {str(k): item for k, item in enumerate(thing)}
    if isinstance(thing, data.View):
        layout = thing.shape()
        if isinstance(layout, data.StructLayout):
            return {name: thing[name] for name in layout.members}
        if isinstance(layout, data.ArrayLayout):
            return {str(k): thing[k] for k in range(layout.length)}
        return {}
    if not _is_interface(thing):
        return {}
    found = {name: getattr(thing, name) for name in thing.signature.members}
    if isinstance(thing, wiring.Component):
        for name, inner in vars(thing).items():
            plain = isinstance(inner, Signal | data.View | wiring.Component)
            if plain and not name.startswith("_"):
                found.setdefault(name, inner)
    return found


def _flat(name, thing):
    """``(name, value)`` of all signals of a group; of a component those of its signature."""
    if isinstance(thing, wiring.Component):
        inner = {n: getattr(thing, n) for n in thing.signature.members}
    else:
        inner = _members(thing)
    if not inner:
        return [(name, Value.cast(thing))]
    return [found for n, item in inner.items() for found in _flat(f"{name}.{n}", item)]


def find_signals(roots, path):
    """``(name, value)`` of each signal that ``path`` names; ``roots``: parts by name.

    Raises :class:`TrebuchetError` that says what there is if there is no such path.
    """
    here, done = roots, []
    for step in path.split("."):
        if step not in here:
            where = f"{'.'.join(done)!r} has no {step!r}" if done else f"there is no part {step!r}"
            names = ", ".join(list(here)[:_SHOWN]) + (", …" if len(here) > _SHOWN else "")
            near = did_you_mean(step, here) or f"; there is: {names or 'nothing'}"
            raise TrebuchetError(f"probe {path!r}: {where}{near}")
        thing = here[step]
        here = _members(thing)
        done.append(step)
    return [(name, value) for name, value in _flat(path, thing) if len(value)]


class Probes:
    """The signals of a plan's probes in a shell.

    Parameters
    ----------
    entry : ProbeSet
        The plan's (:mod:`trebuchet.models.probe_plan`).
    roots : mapping
        Parts of the shell by name: components or interfaces. Of copies of them, which have the
        same signals: the register block is needed before the shell is elaborated.

    Attributes: ``signals``, name and width of each, as the trace core takes them; dots are ``__``.
    """

    def __init__(self, entry, roots):
        self.entry = entry
        found = self._find(roots)
        names = [name for name, _ in found]
        for name in names:
            if names.count(name) > 1:
                raise TrebuchetError(f"probes: {name!r} is in two of them; leave one out")
        width = sum(len(value) for _, value in found)
        if width > MAX_WIDTH:
            raise TrebuchetError(
                f"probes have {width} bits, of at most {MAX_WIDTH}; name single signals, such as "
                f"{names[0]}, instead of groups"
            )
        self.signals = tuple((name.replace(".", "__"), len(value)) for name, value in found)

    def _find(self, roots):
        return [found for path in self.entry.signals for found in find_signals(roots, path)]

    def values(self, roots):
        """The signals in ``roots``, the parts themselves, in their order."""
        return [value.as_unsigned() for _, value in self._find(roots)]
