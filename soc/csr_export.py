"""Register blocks as a C header, as JSON and as SVD, without LiteX.

For whoever has the fabric alone, and for firmware. The bus has words of 32 bits; a register takes
one word, or two when it is wider: ``NAME``, and after it ``NAME_high``. The LiteX bridge lays the
same words out in the same order, so one generator's output fits the other's hardware.

A *map* is a list of ``(block, base address)``.
"""

import json
from xml.etree import ElementTree

from ..cores.csr_map import WORD_BITS, WORD_BYTES, block_size, register_offsets, register_words
from ..models.register_map import hash_of_blocks

__all__ = [
    "WORD_BYTES",
    "block_size",
    "c_header",
    "json_map",
    "register_offsets",
    "register_words",
    "svd",
    "word_fields",
]

_SVD_ACCESS = {"ro": "read-only", "rw": "read-write", "stb": "write-only", "w1c": "read-write"}


def word_fields(register, low, width):
    """``(name, offset, width, description)`` of the fields in one word, by offset.

    A field that lies in both words of a register appears in each with its part.
    """
    found = []
    for field in sorted(register.fields, key=lambda f: f.offset):
        first = max(field.offset, low)
        end = min(field.offset + field.width, low + width)
        if first < end:
            found.append((field.name, first - low, end - first, field.description))
    return found


def _comment(text):
    return f" /* {text.replace('*/', '* /')} */" if text else ""


def _c_register(block, register, address):
    name = f"trebuchet_{block.name}_{register.name}"
    upper = name.upper()
    lines = [f"#define {upper}_ADDR 0x{address:08x}u{_comment(register.description)}"]
    for f in sorted(register.fields, key=lambda f: f.offset):
        lines.append(f"#define {upper}_{f.name.upper()}_OFFSET {f.offset}{_comment(f.description)}")
        lines.append(f"#define {upper}_{f.name.upper()}_WIDTH {f.width}")
    wide = len(register_words(register)) > 1
    ctype = "uint64_t" if wide else "uint32_t"
    if register.access != "stb":
        read = f"trebuchet_read{64 if wide else 32}({upper}_ADDR)"
        lines.append(f"static inline {ctype} {name}_read(void) {{ return {read}; }}")
    if register.access != "ro":
        write = f"trebuchet_write{64 if wide else 32}({upper}_ADDR, value)"
        lines.append(f"static inline void {name}_write({ctype} value) {{ {write}; }}")
    return lines


_C_PROLOGUE = """\
#ifndef {guard}
#define {guard}

#include <stdint.h>

static inline uint32_t trebuchet_read32(uint32_t address)
{{
	return *(volatile uint32_t *)(uintptr_t)address;
}}

static inline void trebuchet_write32(uint32_t address, uint32_t value)
{{
	*(volatile uint32_t *)(uintptr_t)address = value;
}}

/* The low word lies first. A wide register is not read atomically. */
static inline uint64_t trebuchet_read64(uint32_t address)
{{
	uint32_t low = trebuchet_read32(address);
	return (uint64_t)trebuchet_read32(address + 4) << 32 | low;
}}

/* The write of the high word is the one that takes effect, so it comes last. */
static inline void trebuchet_write64(uint32_t address, uint64_t value)
{{
	trebuchet_write32(address, (uint32_t)value);
	trebuchet_write32(address + 4, (uint32_t)(value >> 32));
}}
"""


def c_header(regions, guard="TREBUCHET_REGS_H"):
    """C header with the address of every register, and inline functions to read and write it.

    Names begin with ``trebuchet_``, so that the header goes together with LiteX's ``csr.h``.
    """
    lines = ["/* Generated from the register declarations; do not edit. */"]
    lines.append(_C_PROLOGUE.format(guard=guard))
    for block, base in regions:
        lines.append(f"/* {block.name}: {block.description or 'registers'} */")
        lines.append(f"#define TREBUCHET_{block.name.upper()}_BASE 0x{base:08x}u")
        offsets = register_offsets(block)
        for register in block.registers:
            lines += _c_register(block, register, base + offsets[register.name])
        lines.append("")
    lines.append(f"#endif /* {guard} */")
    return "\n".join(lines) + "\n"


def json_map(regions):
    """The map as a JSON text: blocks, registers and fields by name; ``map`` is its hash."""
    blocks = {}
    for block, base in regions:
        offsets = register_offsets(block)
        blocks[block.name] = {
            "base": base,
            "size": block_size(block),
            "description": block.description,
            "registers": {
                r.name: {
                    "address": base + offsets[r.name],
                    "offset": offsets[r.name],
                    "width": r.width,
                    "access": r.access,
                    "reset": r.reset,
                    "description": r.description,
                    "fields": {
                        f.name: {
                            "offset": f.offset,
                            "width": f.width,
                            "description": f.description,
                        }
                        for f in r.fields
                    },
                }
                for r in block.registers
            },
        }
    return json.dumps({"map": hash_of_blocks(blocks), "blocks": blocks}, indent=2) + "\n"


def _text(parent, tag, value):
    ElementTree.SubElement(parent, tag).text = str(value)


def _svd_register(parent, register, word, offset):
    name, low, width = word
    node = ElementTree.SubElement(parent, "register")
    _text(node, "name", name.upper())
    _text(node, "description", register.description or name)
    _text(node, "addressOffset", f"0x{offset:04x}")
    _text(node, "size", WORD_BITS)
    _text(node, "access", _SVD_ACCESS[register.access])
    if register.access == "w1c":
        _text(node, "modifiedWriteValues", "oneToClear")
    _text(node, "resetValue", f"0x{register.reset >> low & ((1 << width) - 1):08x}")
    fields = word_fields(register, low, width) or [(name, 0, width, "")]
    group = ElementTree.SubElement(node, "fields")
    for field_name, field_offset, field_width, description in fields:
        field = ElementTree.SubElement(group, "field")
        _text(field, "name", field_name)
        if description:
            _text(field, "description", description)
        _text(field, "bitOffset", field_offset)
        _text(field, "bitWidth", field_width)


def svd(regions, device="trebuchet"):
    """The map as CMSIS-SVD text, one peripheral a block."""
    root = ElementTree.Element("device", schemaVersion="1.3")
    for tag, value in (
        ("name", device.upper()),
        ("version", "1"),
        ("description", "Trebuchet registers"),
        ("addressUnitBits", 8),
        ("width", WORD_BITS),
    ):
        _text(root, tag, value)
    peripherals = ElementTree.SubElement(root, "peripherals")
    for block, base in regions:
        node = ElementTree.SubElement(peripherals, "peripheral")
        _text(node, "name", block.name.upper())
        _text(node, "description", block.description or block.name)
        _text(node, "baseAddress", f"0x{base:08x}")
        span = ElementTree.SubElement(node, "addressBlock")
        _text(span, "offset", 0)
        _text(span, "size", f"0x{block_size(block):x}")
        _text(span, "usage", "registers")
        registers = ElementTree.SubElement(node, "registers")
        offset = 0
        for register in block.registers:
            for word in register_words(register):
                _svd_register(registers, register, word, offset)
                offset += WORD_BYTES
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"
