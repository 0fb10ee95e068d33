"""Auto: several methods on the same results, each with a share of the proposals."""
