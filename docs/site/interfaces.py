"""Pages of Python interfaces: client library, LiteX modules, modules that define file formats."""

from .rst import heading

__all__ = ["CLIENT", "FORMATS", "pages"]

#: Modules of the client library, as a program uses them.
CLIENT: tuple[str, ...] = ("blocking", "aio", "management", "role", "operation", "jobs", "errors")
CLIENT += ("session", "smp", "status")
#: Modules whose docstrings define a format, and what it is.
FORMATS = {
    "trebuchet.models.plan": "Plan (TOML)",
    "trebuchet.models.image": "Image",
    "trebuchet.models.config_block": "Configuration block",
    "trebuchet.sim.fleet.topology": "Topology of several boards (YAML)",
    "trebuchet.models.ledger": "Ledger",
    "trebuchet.boards.schema": "Board file",
}


def pages() -> dict[str, str]:
    """Return the pages by name."""
    client = [*heading("Python interface of the client", "=")]
    client += ["``import trebuchet.client``. :doc:`/client` is the guide.", ""]
    client += [f"* :doc:`{name}`" for name in CLIENT]
    found = {"reference/client/index.rst": "\n".join(client) + "\n"}
    for name in CLIENT:
        lines = [":orphan:", "", *heading(f"client.{name}", "=")]
        lines += [f".. automodule:: trebuchet.client.{name}"]
        lines += ["   :inherited-members:"] if name in ("blocking", "aio") else []
        found[f"reference/client/{name}.rst"] = "\n".join(lines) + "\n"
    formats = [*heading("Modules that define file formats", "=")]
    formats += [":doc:`/formats` has an overview.", ""]
    for module, title in FORMATS.items():
        formats += [*heading(title, "-"), f".. automodule:: {module}", ""]
    litex = [*heading("LiteX modules", "="), ":doc:`/cores` shows how to use them.", ""]
    litex += [".. automodule:: trebuchet.integration.modules", ""]
    found["reference/litex.rst"] = "\n".join(litex)
    return found | {"reference/formats.rst": "\n".join(formats)}
