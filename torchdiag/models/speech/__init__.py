"""Models of speech: recognition and synthesis."""
