"""The TCP engine's line side: what lies between frames and segments."""

from amaranth.lib import wiring

from ..net.classify import CLASSIFIER_BLOCK, Classifier
from .icmp import ICMP_BLOCK, IcmpErrors
from .parser import PARSER_BLOCK, Parser
from .registers import tcp_block
from .sender import SENDER_BLOCK, Sender

__all__ = ["LineSide", "line_side_blocks"]


def line_side_blocks(config):
    """The register blocks of the engine and its line side, by name."""
    blocks = {
        "classifier": CLASSIFIER_BLOCK,
        "tcp_rx": PARSER_BLOCK,
        "tcp": tcp_block(config),
        "tcp_tx": SENDER_BLOCK,
    }
    return blocks | ({"icmp": ICMP_BLOCK} if config.icmp else {})


class LineSide:
    """``engine`` with classifier, parser, sender and, if its configuration says so, ICMP errors.

    They become submodules of ``m`` under their own names; ``parts`` has them by the names of
    :func:`line_side_blocks`. Still to connect: ``classifier.rx`` and its ``enable``,
    ``classifier.other`` (frames that are not for the engine), ``sender.frame``, the memory ports of
    engine and sender, services, tick and registers.

    Parameters: ``mac``, ``ip``, as the shell's registers have them.
    """

    def __init__(self, m, engine, mac, ip):
        config = engine.config
        width, vlan = config.width, config.vlan
        m.submodules.classifier = self.classifier = classifier = Classifier(width, vlan=vlan)
        m.submodules.parser = parser = Parser(width, config.rx_buffer, config.rx_segments, config)
        m.submodules.engine = engine
        m.submodules.sender = self.sender = sender = Sender(
            width, tag_width=config.tag_width, config=config
        )
        self.parts = {
            "classifier": classifier, "tcp_rx": parser, "tcp": engine, "tcp_tx": sender
        }  # fmt: skip
        wiring.connect(m, classifier.toe, parser.frame)
        wiring.connect(m, parser.segment, engine.segment)
        wiring.connect(m, parser.payload, engine.payload)
        wiring.connect(m, engine.tx_segment, sender.segment)
        wiring.connect(m, sender.sent, engine.sent)
        if config.icmp:
            m.submodules.icmp = self.parts["icmp"] = icmp = IcmpErrors(width, vlan=vlan)
            icmp.watch(m, classifier.rx, mac, ip)
            wiring.connect(m, icmp.notice, engine.notice)
        for part in (classifier, sender):
            m.d.comb += [part.mac.eq(mac), part.ip.eq(ip)]
