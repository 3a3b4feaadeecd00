"""The benchmark role: takes as long as it is told."""
