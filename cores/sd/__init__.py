"""SD memory cards: a host controller behind the drive port."""
