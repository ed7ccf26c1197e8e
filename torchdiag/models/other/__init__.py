"""Models of no other domain: physics, privacy, meta-learning, audio, graphs."""
