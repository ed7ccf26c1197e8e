"""Bytes to columns: opening, decompressing, scanning, recovering, and the vendors' vocabulary."""
