"""`trebuchet measure`: transfers, latency, load and fairness of boards and job servers.

docs/measure.md says what is measured and how. :mod:`.generator` makes the load on sockets of
:mod:`.connection`, whose bytes are those of :mod:`.traffic`; :mod:`.figures` turns times into
figures, :mod:`.target` reads the counters of what is measured.
"""
