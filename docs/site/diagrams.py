"""SVG drawings of what the source declares: register maps, memory maps, shells, bars of figures."""

from collections.abc import Sequence
from html import escape
from typing import Any

__all__ = ["bars", "memory_map", "register_map", "shell_plan"]

#: Colours that people with colour blindness can tell apart (Okabe and Ito).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c8c8c")
ACCESS = {"ro": "#56b4e9", "rw": "#009e73", "stb": "#e69f00", "w1c": "#cc79a7"}


class Drawing:
    """An SVG picture that grows downwards; positions are in pixels."""

    def __init__(self, width: int) -> None:
        self.width, self.height = width, 0
        self.parts: list[str] = []

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, title: str = ""
    ) -> None:
        hint = f"<title>{escape(title)}</title>" if title else ""
        where = f'x="{x:g}" y="{y:g}" width="{max(width, 0):g}" height="{height:g}"'
        self.parts.append(f'<rect {where} fill="{fill}" stroke="#fff">{hint}</rect>')
        self.height = max(self.height, int(y + height) + 8)

    def text(
        self, x: float, y: float, words: str, anchor: str = "start", weight: str = "normal"
    ) -> None:
        style = f'text-anchor="{anchor}" font-weight="{weight}"'
        self.parts.append(f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>')
        self.height = max(self.height, int(y) + 8)

    def line(self, x: float, y: float, to_x: float, to_y: float, colour: str = "#555") -> None:
        where = f'x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}"'
        self.parts.append(f'<line {where} stroke="{colour}" stroke-width="1.5"/>')

    def svg(self) -> str:
        size = (
            f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        )
        font = 'font-family="sans-serif" font-size="12"'
        back = f'<rect width="{self.width}" height="{self.height}" fill="#fff"/>'
        body = "\n".join((back, *self.parts))
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>\n{body}\n</svg>\n'


def register_map(words: Sequence[tuple[str, Any, int, int]]) -> str:
    """Return a picture of the words of a register block, bit 31 left, coloured by access."""
    drawing = Drawing(760)
    left, bit, row = 190, 17, 18
    for position, (name, access) in enumerate(zip(ACCESS, ACCESS.values(), strict=True)):
        drawing.box(left + 90 * position, 4, 12, 12, access)
        drawing.text(left + 90 * position + 18, 15, name)
    for position in range(32):
        if position % 4 == 0 or position == 31:
            drawing.text(left + (31 - position) * bit + bit / 2, 34, str(position), "middle")
    for number, (name, register, low, width) in enumerate(words):
        y = 40 + number * row
        drawing.text(left - 8, y + 13, f"{4 * number:#05x}  {name}", "end")
        drawing.box(left, y, 32 * bit, row - 2, "#eee")
        x = left + (32 - width) * bit
        drawing.box(x, y, width * bit, row - 2, ACCESS[register.access], register.description)
        for field in register.fields:
            first, end = (
                max(field.offset, low) - low,
                min(field.offset + field.width, low + width) - low,
            )
            if first < end:
                where = left + (32 - end) * bit
                drawing.box(
                    where, y, (end - first) * bit, row - 2, ACCESS[register.access], field.name
                )
                if (end - first) * bit > 7 * len(field.name):
                    drawing.text(where + (end - first) * bit / 2, y + 13, field.name, "middle")
    return drawing.svg()


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"


def memory_map(regions: Sequence[tuple[str, int, int]]) -> str:
    """Return a picture of regions (name, base, bytes) in their order, not to scale."""
    drawing = Drawing(560)
    for number, (name, base, size) in enumerate(regions):
        y = 10 + 34 * number
        drawing.box(130, y, 250, 32, COLOURS[number % len(COLOURS)] if name else "#eee")
        drawing.text(122, y + 12, f"{base:#010x}", "end")
        drawing.text(255, y + 20, name or "free", "middle", "bold")
        drawing.text(390, y + 20, _bytes(size))
    last = regions[-1]
    drawing.text(122, 10 + 34 * len(regions) + 6, f"{last[1] + last[2]:#010x}", "end")
    return drawing.svg()


def shell_plan(
    services: Sequence[tuple[int, str, str]],
    roles: Sequence[tuple[str, int]],
    engines: Sequence[str],
) -> str:
    """Return a picture of a shell.

    ``services``: port, framing and role of each; ``roles``: name and number of instances.
    """
    drawing = Drawing(720)
    rows = max(len(services), sum(max(count, 1) for _, count in roles), 1)
    height = 34 * rows
    drawing.box(10, 40, 110, height, COLOURS[7])
    drawing.text(65, 40 + height / 2, "TCP engine", "middle", "bold")
    at = 0
    place: dict[str, list[int]] = {}
    for name, count in roles:
        for instance in range(max(count, 1)):
            y = 40 + 34 * at
            drawing.box(520, y, 180, 30, COLOURS[2])
            label = name if count == 1 else f"{name}_{instance}"
            drawing.text(610, y + 20, f"role {label}", "middle")
            place.setdefault(name, []).append(y + 15)
            at += 1
    for number, (port, framing, role) in enumerate(services):
        y = 40 + 34 * number
        drawing.line(120, y + 15, 200, y + 15)
        drawing.box(200, y, 180, 30, COLOURS[0] if role else COLOURS[4])
        drawing.text(290, y + 20, f"TCP {port}: {framing}", "middle")
        for end in place.get(role, ()):
            drawing.line(380, y + 15, 520, end)
    drawing.text(
        10,
        24,
        "services and roles" + (f"; engines: {', '.join(engines)}" if engines else ""),
        weight="bold",
    )
    return drawing.svg()


def bars(rows: Sequence[tuple[str, float, float, str]], unit: str, lower: bool) -> str:
    """Return a bar for each row (name, value, budget, shown value); a line marks the budget.

    ``lower``: values below their budget keep it.
    """
    drawing = Drawing(760)
    label, room, row = 260, 380, 24
    most = max((max(value, budget) for _, value, budget, _ in rows), default=1) or 1
    drawing.text(label, 16, unit, weight="bold")
    for number, (name, value, budget, shown) in enumerate(rows):
        y = 24 + number * row
        kept = value <= budget if lower else value >= budget
        drawing.text(label - 8, y + 14, name, "end")
        drawing.box(label, y, room * value / most, row - 6, COLOURS[0] if kept else COLOURS[5])
        x = label + room * budget / most
        drawing.line(x, y - 2, x, y + row - 4, "#000")
        drawing.text(label + room + 10, y + 14, shown)
    return drawing.svg()
