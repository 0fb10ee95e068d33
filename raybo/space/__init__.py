"""Search spaces: parameters, their encoding in the unit cube, conditional structure, designs."""
