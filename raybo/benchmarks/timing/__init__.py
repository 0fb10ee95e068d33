"""Programs that measure time, throughput and asynchrony."""
