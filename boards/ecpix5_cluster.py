"""LambdaConcept ECPIX-5 85F as one of up to four boards that do each other's jobs.

It is an :mod:`.ecpix5` with the elastic router and LTL (docs/network.md, Cluster). Who its peers
are is set in flash, by the keys ``peer1`` to ``peer3`` (docs/firmware-flash.md).
"""

from . import ecpix5

BOARD = ecpix5.BOARD.variant(
    name="ecpix5_cluster",
    title="LambdaConcept ECPIX-5 85F, cluster of four",
    peers=3,
    router="patient",  # the quick one drives wires apart
)
