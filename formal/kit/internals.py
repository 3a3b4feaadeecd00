"""All that proofs and tests use of Amaranth without a public name, in one place.

Written for Amaranth 0.5; a new release is tried here first. ``tests/test_repo_rules.py`` refuses
such names elsewhere.
"""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.hdl._ast import Property
from amaranth.sim import _pyrtl

__all__ = [
    "Property",
    "compiler",
    "driven_signals",
    "is_used",
    "mark_used",
    "state_machines",
    "state_register",
    "submodules",
]

#: The module that compiles processes for the simulator.
compiler = _pyrtl


def mark_used(part: Elaboratable) -> None:
    """Suppress the warning that ``part`` is never elaborated."""
    part._MustUse__used = True


def is_used(part: Elaboratable) -> bool:
    """Whether ``part`` was elaborated, or marked as used."""
    return part._MustUse__used


def submodules(module: Module) -> tuple[dict[str, object], list[object]]:
    """Return the submodules by name, and those without a name."""
    named = {name: part for name, (part, _) in module._named_submodules.items()}
    return named, [part for part, _ in module._anon_submodules]


def state_machines(module: Module) -> dict[str, object]:
    """Return the state machines of a module that is elaborated, by name."""
    return module._generated


def driven_signals(module: Module) -> list[Signal]:
    """Return the signals that a module drives, in the order of its first statements."""
    return list(module._driving)


def state_register(machine) -> Signal:
    """Return the register of a state machine."""
    return machine._data["signal"]
