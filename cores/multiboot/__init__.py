"""Starting another bitstream of the flash."""
