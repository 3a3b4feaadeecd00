"""Amaranth's simulator, without the work of processes that would change nothing.

Amaranth 0.5's runs the process of every fragment at every clock edge. Most fragments of a large
design stand still most of the time. :class:`Engine` runs one only if something that it reads has
changed since it last ran: what it reads and what it holds are all that it depends on, so it would
compute the same again. All else is Amaranth's own, and so are the results, cycle by cycle.

It goes by the text that Amaranth compiles, of the version that requirements.lock names; a text of
another kind is an error, not a slower simulation. ``TREBUCHET_PLAIN_SIMULATOR=1`` takes Amaranth's
engine as it is.
"""

import contextlib
import os
import re

from amaranth.sim import Simulator
from amaranth.sim.pysim import PySimEngine
from trebuchet.formal.kit.internals import compiler

__all__ = ["Engine", "make_simulator"]

_SLOT = re.compile(r"\bslots\[(\d+)\]")
_UPDATE = re.compile(r"^( +)(s\d+)\.update\((next_\d+), (-?\d+)\)$", re.M)
_WRITE = re.compile(r"^( +)(s\d+\.write\(\w+, \w+, (\w+)\))$", re.M)
#: Statements that do something each time: an assertion of a fragment, a printed line.
_EFFECT = re.compile(r"\b(pin_blame|print)\(")


def make_simulator(dut):
    """A simulator of ``dut`` with the engine that the environment asks for."""
    plain = os.environ.get("TREBUCHET_PLAIN_SIMULATOR")
    return Simulator(dut, engine="pysim" if plain else Engine)


def _faster(code):
    """The text of a process, each slot by a name, without calls that change nothing.

    Its function has the numbers of all slots that it reads or writes as ``slots``, and as
    ``effect`` whether it does more than that.
    """
    used = sorted({int(number) for number in _SLOT.findall(code)})
    effect = bool(_EFFECT.search(code))
    code = _SLOT.sub(r"s\1", code)
    code = _UPDATE.sub(r"\1if \2.next != \3: \2.update(\3, \4)", code)
    code = _WRITE.sub(r"\1if \3: \2", code)
    names = [f"s{number} = slots[{number}]" for number in used]
    return "\n".join([*names, code, f"run.slots = {tuple(used)}", f"run.effect = {effect}", ""])


@contextlib.contextmanager
def _compiled_faster():
    """Within it Amaranth compiles :func:`_faster` texts."""

    def compile_faster(code, filename, mode):
        if not code.startswith("def run():"):
            raise AssertionError(f"Amaranth compiles another kind of text: {code[:60]!r}")
        return compile(_faster(code), filename, mode)

    compiler.compile = compile_faster  # hides the built-in function of this name
    try:
        yield
    finally:
        del compiler.compile


class Engine(PySimEngine):
    """Amaranth's engine; see this module."""

    def __init__(self, design):
        with _compiled_faster():
            super().__init__(design)
        self._changed = []
        for process in self._processes:
            if not process.is_comb and not process.run.effect:
                process.run = self._if_changed(process.run)

    def _if_changed(self, run):
        """``run``, which then does nothing unless a slot of its has changed since it last ran."""
        changed = [True]
        self._changed.append(changed)

        def tell(*_):
            changed[0] = True
            return True  # keep this waker

        for number in run.slots:
            self._state.slots[number].add_waker(tell)

        def run_if_changed():
            # A slot that changes at this edge is told of when the change is committed: later.
            if changed[0]:
                changed[0] = False
                run()

        return run_if_changed

    def reset(self):
        """As Amaranth's. What the processes read is as at the start without being told of."""
        super().reset()
        for changed in self._changed:
            changed[0] = True
