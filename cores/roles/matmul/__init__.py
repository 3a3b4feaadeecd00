"""The matrix-multiply role."""
