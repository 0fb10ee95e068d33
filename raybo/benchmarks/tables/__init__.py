"""Tables of results: which problems, methods and budgets."""
