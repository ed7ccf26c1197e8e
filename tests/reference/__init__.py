"""Slow, obvious readings of the contract. Everything fast is judged by them."""
