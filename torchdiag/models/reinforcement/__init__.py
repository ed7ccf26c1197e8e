"""Models of reinforcement learning; the environment's share of a step is marked."""
