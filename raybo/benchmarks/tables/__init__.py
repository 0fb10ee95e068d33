"""Tables and figures of the papers: which problems, tuners and budgets."""
