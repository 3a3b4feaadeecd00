"""Trebuchet: an open Catapult. The subpackages are the repository's top-level folders."""

__version__ = "0.1.0"
