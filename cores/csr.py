"""Registers: declared once, here; maps, C headers, JSON and SVD are generated from that.

A core declares a :class:`RegisterBlock` and puts a member ``csr: In(CsrSignature(block))`` into its
signature. The core sees plain signals; no bus enters ``cores/``. Whoever integrates the
core (``soc/bridge.py`` for LiteX, a test bench, the fabric-only simulation) drives them.

Members that a register ``R`` of each access kind adds to the signature (directions as the core
sees them):

==========  ==================  ==================================================================
access      member              meaning
==========  ==================  ==================================================================
``"ro"``    ``R: Out``          current value, sampled when the bus reads
            ``R_read: In``      with ``reads`` only: 1 for the one cycle in which the bus reads
``"rw"``    ``R: In``           value last written; the declared reset value until then
``"stb"``   ``R: In``           the written value for the one clock cycle of the write, else 0
``"w1c"``   ``R: Out``          pending bits
            ``R_clear: In``     for the one cycle of a write: the bits written as 1, else 0
==========  ==================  ==================================================================

Parts of a register are reached by their names: ``fields(csr, "R").part`` (:func:`fields`).
"""

from dataclasses import dataclass, field

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ACCESS", "CsrSignature", "Field", "Register", "RegisterBlock", "counter", "fields"]

ACCESS = ("ro", "rw", "stb", "w1c")


def _check_name(kind, name):
    if not isinstance(name, str) or not name.isidentifier() or name != name.lower():
        raise ValueError(f"{kind} name must be a lower-case identifier, not {name!r}")


@dataclass(frozen=True)
class Field:
    """Some bits of a register, from bit ``offset`` on, ``width`` of them."""

    name: str
    offset: int
    width: int = 1
    description: str = ""

    def __post_init__(self):
        _check_name("Field", self.name)


@dataclass(frozen=True)
class Register:
    """One register of at most 64 bits.

    ``fields`` may name parts of it; they must not overlap. ``reset`` counts for ``rw`` only.
    ``reads``, for ``ro`` of one word only: reading it has an effect, so the core gets a strobe;
    where a bus has none (``soc/bridge.py`` has) it stays 0.
    """

    name: str
    access: str
    width: int = 32
    description: str = ""
    reset: int = 0
    fields: tuple[Field, ...] = ()
    reads: bool = False

    def __post_init__(self):
        _check_name("Register", self.name)
        if self.access not in ACCESS:
            raise ValueError(
                f"Access of register {self.name!r} must be one of {ACCESS}, not {self.access!r}"
            )
        if not 1 <= self.width <= 64:
            raise ValueError(
                f"Width of register {self.name!r} must be 1 to 64 bits, not {self.width!r}"
            )
        if not 0 <= self.reset < 1 << self.width:
            raise ValueError(
                f"Reset value of register {self.name!r} must fit {self.width} bits, "
                f"not {self.reset!r}"
            )
        if self.reads and (self.access != "ro" or self.width > 32):
            raise ValueError(f"Register {self.name!r} must be ro, of one word, to have `reads`")
        used = 0
        for f in self.fields:
            mask = ((1 << f.width) - 1) << f.offset
            if f.offset + f.width > self.width or used & mask:
                raise ValueError(
                    f"Field {f.name!r} of register {self.name!r} overlaps another or "
                    f"does not fit {self.width} bits"
                )
            used |= mask


def counter(name, description):
    """A 32-bit read-only event counter that wraps."""
    return Register(name, "ro", 32, description)


@dataclass(frozen=True)
class RegisterBlock:
    """An ordered set of registers with a name, as one core declares it."""

    name: str
    registers: tuple[Register, ...] = field(default=())
    description: str = ""

    def __post_init__(self):
        _check_name("Register block", self.name)
        names = [r.name for r in self.registers]
        names += [r.name + "_clear" for r in self.registers if r.access == "w1c"]
        names += [r.name + "_read" for r in self.registers if r.reads]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"Register block {self.name!r} declares {name!r} twice")


class CsrSignature(wiring.Signature):
    """The register block of one core as signals, from the core's side (use it with ``In``)."""

    def __init__(self, block):
        if not isinstance(block, RegisterBlock):
            raise TypeError(f"CsrSignature takes a RegisterBlock, not {block!r}")
        self.block = block
        # The member itself is `In`, so `In` here means "driven from outside the core".
        members = {}
        for r in block.registers:
            if r.access in ("ro", "w1c"):
                members[r.name] = Out(r.width)
            else:
                members[r.name] = In(r.width, init=r.reset if r.access == "rw" else 0)
            if r.access == "w1c":
                members[r.name + "_clear"] = In(r.width)
            if r.reads:
                members[r.name + "_read"] = In(1)
        super().__init__({name: m.flip() for name, m in members.items()})

    def __eq__(self, other):
        return isinstance(other, CsrSignature) and self.block == other.block

    def __repr__(self):
        return f"CsrSignature({self.block.name!r})"


def fields(csr, name):
    """Register ``name`` of the block ``csr`` as a struct of its declared fields.

    ``csr`` is an interface of a :class:`CsrSignature`. Reads and assigns through the struct are
    those of the register's bits. Raises AttributeError if there is no such register.
    """
    value = getattr(csr, name)
    declared = next(r for r in csr.signature.block.registers if r.name == name)
    parts = {f.name: data.Field(f.width, f.offset) for f in declared.fields}
    return data.View(data.FlexibleLayout(declared.width, parts), value)
