"""Typing at the console of a simulated board."""

import os
import re
import select

from patience import Patience

__all__ = ["PROMPT", "Console"]

PROMPT = "trebuchet> "


class Console:
    """The far end of a board's UART."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        self.text = ""

    def until(self, pattern, seconds=80):
        """Everything up to and with what fits ``pattern``, which is taken away."""
        patience = Patience(seconds)
        while (found := re.search(pattern, self.text)) is None:
            assert not patience.over(), f"no {pattern!r} in {self.text[-2000:]!r}"
            if select.select([self.file], [], [], 0.2)[0]:
                self.text += os.read(self.file, 65536).decode()
        taken, self.text = self.text[: found.end()], self.text[found.end() :]
        return taken

    def type(self, text):
        os.write(self.file, text.encode())

    def run(self, line):
        """Type a line; returns the output of the command."""
        self.type(line + "\r")
        self.until(re.escape(line) + "\r\n")
        return self.until(re.escape(PROMPT)).removesuffix(PROMPT).replace("\r\n", "\n")

    def close(self):
        os.close(self.file)
