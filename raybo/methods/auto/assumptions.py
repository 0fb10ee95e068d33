"""What the members of auto assume of an objective, in words."""

ASSUMPTIONS = {
    "bo": "every parameter has a scale of its own",
    "local": "what is near the best point counts, and all parameters have one scale",
    "linear": "the effects of parameters add up, nearly in proportion",
    "egp": "all parameters have one scale",
    "addtree": "the effects of branches add up",
}
