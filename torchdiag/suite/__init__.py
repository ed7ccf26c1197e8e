"""Suites: which models are run how, running them one by one in processes of their own, and what came of it."""
