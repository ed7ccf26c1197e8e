"""Runs a target under the profiler, and records what the profiler cannot see."""
