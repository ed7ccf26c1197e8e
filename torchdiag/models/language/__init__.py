"""Models of language."""
