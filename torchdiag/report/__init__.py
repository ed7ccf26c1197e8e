"""Renderers of facts, one a file."""
