"""Trebuchet: an open Catapult. The subpackages are the repository's top-level folders.

And the modules of ``integration/public``: ``trebuchet.litex``.
"""

import os

__version__ = "0.2.0"

__path__.append(os.path.join(os.path.dirname(__file__), "integration", "public"))
