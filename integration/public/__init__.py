"""Modules that `trebuchet/__init__.py` puts into the package itself, under their own names.

``trebuchet.litex`` cannot be a folder of the tree: in the top folder of a checkout Python would
find it in the place of LiteX.
"""
