"""The inbox, its cards, and several cards at once."""
