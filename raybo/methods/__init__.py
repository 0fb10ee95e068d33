"""Search methods: each a pure function from the data of a study to its next point."""
