"""The page of a person's own tokens."""
