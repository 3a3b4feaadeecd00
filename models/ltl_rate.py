"""DC-QCN's reaction point and random early drop, bit for bit as ``cores/ltl`` reckons them.

Rates are in 1/65536 beat of the data path a cycle, ``alpha`` is a fraction of 65536.
"""

from dataclasses import dataclass, field

__all__ = ["Parameters", "RateControl"]


@dataclass(frozen=True)
class Parameters:
    line: int = 65535
    minimum: int = 65
    additive: int = 65
    hyper: int = 325
    gain: int = 8
    alpha_ticks: int = 55
    rate_ticks: int = 60
    rate_beats: int = 312500
    recovery: int = 5


@dataclass
class RateControl:
    """One connection, from its opening on."""

    p: Parameters = field(default_factory=Parameters)

    def __post_init__(self) -> None:
        self.limited = False
        self.current = self.target = self.p.line
        self.alpha = 0xFFFF
        self.timer_stage = self.byte_stage = 0
        self.count = self.p.rate_beats
        self.alpha_age = self.rate_age = 0

    def notified(self) -> None:
        """A CNP."""
        p = self.p
        self.limited, self.target = True, self.current
        self.current = max(p.minimum, self.current - (self.alpha * self.current >> 17))
        self.alpha = min(0xFFFF, self.alpha - (self.alpha >> p.gain) + (0x10000 >> p.gain))
        self.timer_stage = self.byte_stage = 0
        self.count, self.alpha_age, self.rate_age = p.rate_beats, 0, 0

    def tick(self) -> None:
        """One tick passes."""
        self.alpha_age += 1
        self.rate_age += 1
        if self.alpha_age >= self.p.alpha_ticks:
            self.alpha -= self.alpha >> self.p.gain
            self.alpha_age = 0
        if self.limited and self.rate_age >= self.p.rate_ticks:
            self.rate_age = 0
            self.timer_stage = min(15, self.timer_stage + 1)
            self._increase()

    def sent(self, beats: int) -> None:
        """A frame of so many beats is sent."""
        if not self.limited:
            return
        if self.count > beats:
            self.count -= beats
            return
        self.count = self.p.rate_beats
        self.byte_stage = min(15, self.byte_stage + 1)
        self._increase()

    def _increase(self) -> None:
        p = self.p
        past = (self.timer_stage > p.recovery) + (self.byte_stage > p.recovery)
        self.target = min(p.line, self.target + (0, p.additive, p.hyper)[past])
        self.current = (self.current + self.target + 1) >> 1
        if self.current >= p.line:
            self.limited = False
