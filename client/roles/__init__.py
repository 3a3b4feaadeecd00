"""Typed calls of the roles of the tree, a file each; found by the role's name (:mod:`..role`)."""
