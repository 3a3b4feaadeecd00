"""Trace events: what happens to which session, a line for each, where the engine is simulated.

A line is ``tcp-event`` and pairs of a name and a value:

``tick`` ``engine`` ``event``
    When, where, and a counter of the block ``"tcp"``: each of its steps is an event.
``session`` ``snd_una`` ``snd_nxt`` ``rcv_nxt``
    Whose it is, and its numbers before it; none of them if no session is concerned.

Or its event is ``phase``, with ``session``, ``from`` and ``to``: see :class:`.record.Phase`. Values
end at a blank; behind names there may be several.
"""

from amaranth.hdl import Format, Print

__all__ = ["trace_counts", "trace_phase"]


def _line(m, now, engine, event, text="", *values):
    m.d.sync += Print(
        Format(f"tcp-event tick={{:d}} engine={engine} event={event}{text}", now, *values)
    )


def trace_counts(m, now, engine, port, counts):
    """A line for each strobe of the counters of an engine; the record at ``port`` is as it was."""
    r, text = port.record, " session={:d} snd_una={:d} snd_nxt={:d} rcv_nxt={:d}"
    for event in counts.shape().members:
        with m.If(counts[event] & port.grant):
            _line(m, now, engine, event, text, port.session, r.snd_una, r.snd_nxt, r.rcv_nxt)
        with m.Elif(counts[event]):
            _line(m, now, engine, event)


def trace_phase(m, now, session, before, after):
    """A line if a session's phase has changed; to be executed once for each hand-back."""
    with m.If(before != after):
        _line(m, now, "store", "phase", " session={:d} from={} to={}", session, before, after)
