"""What a trace core captured (``cores/probe/trace.py``): its layout, its trigger, its records.

Everything follows from the register block ``probe`` of the build's register map
(:mod:`.register_map`): the fields of its registers ``mask_0`` … are the probes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .errors import TrebuchetError, did_you_mean
from .register_map import RegisterMap

__all__ = ["Capture", "Layout", "Probe", "Trigger", "cycles_of"]

_WORD_BITS = 32
_LISTED = 8
#: NAME=VALUE, NAME=VALUE/MASK, NAME:EDGE.
_EQUAL = re.compile(r"([^=:]+)=([^/]+)(?:/(.+))?")
_EDGE = re.compile(r"([^=:]+):(\w+)")
_EDGES = ("rise", "fall", "change")
#: Ends of the names of the signals of a stream's handshake.
_HANDSHAKE = ("valid", "ready")


@dataclass(frozen=True)
class Probe:
    """A signal that is sampled: ``width`` bits of a sample from bit ``offset`` on."""

    name: str
    offset: int
    width: int

    def of(self, sample: int) -> int:
        """Return the signal's value in a sample."""
        return sample >> self.offset & ((1 << self.width) - 1)


@dataclass(frozen=True)
class Trigger:
    """A condition on samples, as numbers of a sample's bits (rule 3 of the trace core).

    Bits of ``mask`` must be as in ``value``; unless ``edge`` is 0, one of its bits must differ
    from the sample before. The default is met by every sample.
    """

    value: int = 0
    mask: int = 0
    edge: int = 0


@dataclass(frozen=True)
class Layout:
    """What a build's trace core has.

    Attributes
    ----------
    probes : tuple of Probe
        In the order of their bits.
    depth : int
        Records that it keeps.
    stamp_width, time_width : int
        Bits of a record's time stamp, and of its cycle counter.
    """

    probes: tuple[Probe, ...]
    depth: int
    stamp_width: int
    time_width: int

    @classmethod
    def of(cls, registers: RegisterMap) -> "Layout":
        """Return the layout of a build; raise :class:`TrebuchetError` if it has no trace core."""
        named = registers.registers
        if "probe.control" not in named:
            raise TrebuchetError(
                "the build has no trace core: build it with --probe SIGNAL (docs/probe.md)"
            )
        widths: dict[str, int] = {}
        begins: dict[str, int] = {}
        at = k = 0
        while (register := named.get(f"probe.mask_{k}")) is not None:
            for field in sorted(register.fields.values(), key=lambda each: each.offset):
                begins.setdefault(field.name, at)
                widths[field.name] = widths.get(field.name, 0) + field.width
                at += field.width
            k += 1
        probes = tuple(
            Probe(name.replace("__", "."), begins[name], width) for name, width in widths.items()
        )
        depth = 1 << named["probe.before"].width
        end = named["probe.end_time"]
        return cls(probes, depth, end.fields["stamp"].width, end.width)

    @property
    def width(self) -> int:
        """Bits of a sample."""
        return sum(probe.width for probe in self.probes)

    @property
    def words(self) -> int:
        """Words of 32 bits of a sample."""
        return -(-self.width // _WORD_BITS)

    def find(self, name: str) -> Probe:
        """Return the probe called ``name``, or by the end of its name if only one ends so."""
        ends = [p for p in self.probes if p.name == name or p.name.endswith(f".{name}")]
        exact = [p for p in ends if p.name == name] or ends
        if len(exact) == 1:
            return exact[0]
        names = [probe.name for probe in (exact or self.probes)]
        near = did_you_mean(name, names) if not exact else ""
        shown = ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
        what = "several probes end in" if exact else "there is no probe"
        raise TrebuchetError(f"{what} {name!r}{near or f'; there are: {shown}'}")

    def streams(self) -> list[str]:
        """Return the names of the streams of which ``valid`` and ``ready`` are probes."""
        names = {probe.name for probe in self.probes}
        found = [name.removesuffix(".valid") for name in names if name.endswith(".valid")]
        return sorted(name for name in found if f"{name}.ready" in names)

    def stream(self, name: str) -> str:
        """Return the whole name of a stream, of which ``name`` is the end."""
        streams = self.streams()
        ends = [each for each in streams if each == name or each.endswith(f".{name}")]
        exact = [each for each in ends if each == name] or ends
        if len(exact) == 1:
            return exact[0]
        what = "several streams end in" if exact else "no stream is sampled that is called"
        near = did_you_mean(name, streams) if not exact else ""
        said = f"; there are: {', '.join((exact or streams)[:_LISTED])}"
        none = "; name its valid and ready with --probe when the board is built"
        raise TrebuchetError(f"{what} {name!r}{near or (said if streams else none)}")

    def trigger(self, conditions: Iterable[str]) -> Trigger:
        """Return the trigger of texts such as ``tx.valid=1`` or ``tcp.csr.retransmits:change``.

        ``NAME=VALUE`` or ``NAME=VALUE/MASK``: the signal's bits, of MASK, are those of VALUE.
        ``NAME:rise``, ``NAME:fall`` (of one bit), ``NAME:change``: it differs from the sample
        before. All equalities must hold, and one of the edges.
        """
        value = mask = edge = 0
        for text in conditions:
            if (match := _EQUAL.fullmatch(text)) is not None:
                probe = self.find(match[1])
                full = (1 << probe.width) - 1
                wanted = _number(text, match[2], full)
                bits = full if match[3] is None else _number(text, match[3], full)
            elif (match := _EDGE.fullmatch(text)) is not None and match[2] in _EDGES:
                probe = self.find(match[1])
                full = (1 << probe.width) - 1
                edge |= full << probe.offset
                if match[2] == "change":
                    continue
                if probe.width != 1:
                    raise TrebuchetError(
                        f"trigger {text!r}: {match[2]} is of a single bit, and {probe.name} has "
                        f"{probe.width}; use {match[1]}:change"
                    )
                wanted, bits = int(match[2] == "rise"), 1
            else:
                raise TrebuchetError(
                    "a trigger must be NAME=VALUE, NAME=VALUE/MASK, or NAME:rise, :fall or "
                    f":change, not {text!r}"
                )
            bits, wanted = bits << probe.offset, wanted << probe.offset
            if (value ^ wanted) & mask & bits:
                raise TrebuchetError(f"trigger {text!r} contradicts another one; leave one out")
            value, mask = value | wanted & bits, mask | bits
        return Trigger(value, mask, edge)


def _number(trigger: str, text: str, most: int) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if not 0 <= number <= most:
        raise TrebuchetError(
            f"trigger {trigger!r}: {text!r} must be a number from 0 to {most}, such as {most:#x}"
        )
    return number


def cycles_of(stamps: Sequence[int], stamp_width: int, end: int) -> list[int]:
    """Return the cycles of records with these stamps, the oldest first.

    ``end`` is the cycle of the last sample, which the last record holds up to. Consecutive records
    are 1 to ``2**stamp_width`` cycles apart, so the cycles are exact.
    """
    period = 1 << stamp_width
    cycles: list[int] = []
    for place, stamp in enumerate(reversed(stamps)):
        apart = (stamps[len(stamps) - place] - stamp) % period or period if place else 0
        at = cycles[-1] - apart if place else end - (end - stamp) % period
        cycles.append(at)
    return cycles[::-1]


@dataclass(frozen=True)
class Capture:
    """Samples around a trigger.

    Attributes
    ----------
    layout : Layout
    records : tuple of (int, int)
        Cycle and sample of each change, the oldest first; each holds until the next one.
    end : int
        Cycle of the last sample.
    trigger : int or None
        Cycle of the trigger; None: the capture was stopped before it.
    hz : int
        Cycles in a second.
    """

    layout: Layout
    records: tuple[tuple[int, int], ...]
    end: int
    trigger: int | None
    hz: int

    def value(self, probe: Probe, cycle: int) -> int:
        """Return what a signal was in a cycle from the first record's to the end."""
        if not self.records or not self.records[0][0] <= cycle <= self.end:
            raise TrebuchetError(f"cycle {cycle} is not in the capture")
        held = [sample for at, sample in self.records if at <= cycle]
        return probe.of(held[-1])

    def seconds(self, cycle: int) -> float:
        """Return the time of a cycle after the trigger, or after the first record without one."""
        origin = self.records[0][0] if self.trigger is None else self.trigger
        return (cycle - origin) / self.hz

    def transfers(self, stream: str) -> Iterator[tuple[int, dict[str, int]]]:
        """Cycle and payload of each transfer of a stream, of which all signals are probes.

        ``stream``: name of a stream, such as ``tcp.tx_segment``, or the end of it. A transfer is a
        cycle in which its ``valid`` and ``ready`` are 1. The payload is by name: what follows
        ``stream.`` or ``stream.payload.`` in the probe's. Raises :class:`TrebuchetError` if there
        is no such stream.
        """
        found = self.layout.stream(stream)
        valid, ready = (self.layout.find(f"{found}.{end}") for end in _HANDSHAKE)
        payload = {
            probe.name[len(found) + 1 :].removeprefix("payload."): probe
            for probe in self.layout.probes
            if probe.name.startswith(f"{found}.") and probe not in (valid, ready)
        }
        ends = [cycle for cycle, _ in self.records[1:]] + [self.end + 1]
        for (begin, sample), end in zip(self.records, ends, strict=True):
            if valid.of(sample) and ready.of(sample):
                values = {name: probe.of(sample) for name, probe in payload.items()}
                yield from ((cycle, values) for cycle in range(begin, end))

    def changes(self) -> Iterator[tuple[int, dict[str, int]]]:
        """Cycle, and by name the signals that changed then; of the first record all."""
        before: int | None = None
        for cycle, sample in self.records:
            yield (
                cycle,
                {
                    probe.name: probe.of(sample)
                    for probe in self.layout.probes
                    if before is None or probe.of(sample) != probe.of(before)
                },
            )
            before = sample
