"""What is kept of a run: its options, its numbers, its place on disk."""
