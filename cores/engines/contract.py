"""The stream engine contract: packets in, packets out, registers; one body for three places.

A *body* is a component with these members (directions as the body sees them):

=======  ====  =========================================================================
member   dir   meaning
=======  ====  =========================================================================
``i``    In    packet stream (:mod:`trebuchet.cores.stream`)
``o``    Out   packet stream of the same width
``csr``  In    :class:`~trebuchet.cores.csr.CsrSignature` of its registers, if it has any
=======  ====  =========================================================================

It knows nothing of where its packets come from. The *surroundings* are one of

* :class:`~trebuchet.cores.roles.packet_role.PacketRole`: the body of a memory role. A packet is a
  job's operand; the packet that comes out is its result.
* :class:`~trebuchet.cores.engines.stage.EngineStage`: in the way of any packet stream, such as the
  data of a drive. A packet is what moves in one command.
* :class:`~trebuchet.cores.bridge.inline.InlineEngine`: in one direction of a bridge. A packet is an
  Ethernet frame without FCS.

A packet is *at work* from the cycle in which its first beat is offered at ``i`` to the one in
which its last beat is taken at ``o``; it is *whole* when its last beat has been taken at ``i``.
The body keeps the rules below, given that the surroundings keep theirs.

1. **Streams.** Both streams keep the rules of :mod:`trebuchet.cores.stream`: what is offered stays
   until it is taken; ``first``, ``last``, ``empty`` and ``error`` as there. Nobody waits for
   ``ready`` before it offers.
2. **One for one.** For each packet in, one packet comes out, in order. None is dropped, none is
   invented: a body that has nothing to say of a packet, or wants it dropped, gives any packet, of
   one beat if it likes, with ``error``. No beat of a packet is offered before its first one is
   offered at ``i``. Its last one is not offered before the last one is offered at ``i``, and not
   taken before that is taken.
3. **Damage.** A packet whose last beat came with ``error`` leaves with ``error``. A body that
   cannot do its work on a packet sets ``error`` itself. What else is in such a packet means
   nothing: a memory role answers ``BAD_DATA``, a bridge drops the frame, a drive's command fails.
4. **Growth.** At any time at most ``growth`` bytes more of a packet have been taken at ``o`` than
   at ``i``. ``growth`` None: it may be longer by any number, but it ends.
5. **Progress.** The body is *due* while a beat is offered at ``i``, or while it has a whole packet.
   While it is due, there are at most ``latency`` cycles in a row in which it neither takes a beat
   at ``i`` nor offers one at ``o``. ``latency`` None: it does not say how many, but they end.
   So it may make ``i`` wait while ``o`` is not taken, and it may take a whole packet before it
   offers a beat; it may not wait for the next packet before it gives the last one.
6. **No deadlock.** The surroundings take what is offered at ``o`` whether or not they have a beat
   for ``i``, and bring the rest of a packet that they began at ``i`` whether or not a beat of it
   was offered at ``o``. Whoever has nothing more to give ends the packet with ``error``.
7. **Reset and abort.** A synchronous reset at any time, of the body alone, empties it: packets at
   work come to nothing, and both streams begin anew with a first beat, at ``o`` without any regard
   to what had been offered. There is no other abort, and no port for it: the surroundings reset the
   body (``ResetInserter``), swallow the rest of the packet at ``i``, and end the one at ``o``.
8. **Registers.** Surroundings may keep ``rw`` registers as they are while a packet is at work;
   EngineStage and InlineEngine do. In a memory role that is up to whoever writes them: switch the
   instance off and wait until it is idle. If they change all the same, rules 1 to 7 hold; what is
   in packets at work then means nothing unless the body says more. A ``stb`` register may be
   written, and counters are read, at any time. After reset the body works without a write to any
   register: boards without a processor write none.
9. **Bad input.** There is no packet that a body may hang on, however short or long: of what is no
   packet for it, it takes all, and gives one with ``error``. What breaks rule 1 is not bad input
   but a fault of the surroundings; the body then promises nothing until it is reset.

A body says what it promises by an attribute ``limits``, :class:`EngineLimits`; one without it
promises neither growth nor latency. The rules are stated for proofs, on either side, by
``formal/engines/contract.py``.
"""

from dataclasses import dataclass

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature, Field, Register, RegisterBlock, counter
from ..stream import PacketSignature, check_data_width

__all__ = ["EngineLimits", "StreamEngineSignature", "check_body", "engine_block", "limits_of"]


@dataclass(frozen=True)
class EngineLimits:
    """What a body promises.

    Attributes
    ----------
    growth : int or None
        Bytes by which a packet may be longer than it came (rule 4); None: any number.
    latency : int or None
        Cycles in a row in which it does nothing although it is due (rule 5); None: not said.
    """

    growth: int | None = None
    latency: int | None = None

    def __post_init__(self):
        for name in ("growth", "latency"):
            value = getattr(self, name)
            good = value is None or (type(value) is int and value >= 0)
            if not good:
                raise ValueError(
                    f"An engine's {name} must be an integer >= 0 or None, not {value!r}"
                )


class StreamEngineSignature(wiring.Signature):
    """Signature of a body, from the body's side.

    Parameters
    ----------
    width : int
        Data path of both streams, in bits.
    block : RegisterBlock or None
        Its registers; None for a body that has none.
    """

    def __init__(self, width=32, block=None):
        self.width, self.block = check_data_width(width), block
        members = {"i": In(PacketSignature(width)), "o": Out(PacketSignature(width))}
        if block is not None:
            members["csr"] = In(CsrSignature(block))
        super().__init__(members)


def check_body(body, width):
    """Return the register block of ``body``, or None; ValueError if it is no body of ``width``."""
    for name in ("i", "o"):
        have = len(getattr(body, name).payload.data)
        if have != width:
            raise ValueError(f"Stream {name!r} of the body must have {width} bits, not {have}")
    members = body.signature.members
    return members["csr"].signature.block if "csr" in members else None


def limits_of(body):
    """What ``body`` promises."""
    return getattr(body, "limits", EngineLimits())


def engine_block(name, block=None, extra=()):
    """Register block of an engine in a stream: standard ones, ``extra``, the body's ``block``."""
    standard = (
        Register(
            "enable",
            "rw",
            1,
            "0: packets pass as they are; counts for packets that begin when none is at work",
            reset=1,
        ),
        Register("reset", "stb", 1, "write 1: reset the engine; packets at work end with an error"),
        Register(
            "state",
            "ro",
            2,
            "what the engine does now",
            fields=(
                Field("active", 0, 1, "a packet is at work"),
                Field("bypass", 1, 1, "packets pass as they are"),
            ),
        ),
        counter("packets", "packets that have left"),
        counter("errors", "those of them with an error mark"),
        counter("aborted", "those of them that a reset has cut short"),
        Register(
            "faults", "ro", 16, "resets because it hung, or gave what nobody asked for (wraps)"
        ),
    )
    own = block.registers if block is not None else ()
    description = block.description if block is not None else f"engine {name}"
    return RegisterBlock(name, (*standard, *extra, *own), description)
