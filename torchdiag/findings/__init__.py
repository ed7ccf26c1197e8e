"""What a rule says, and what becomes of it: the words between rules, diagnosis and reports."""
