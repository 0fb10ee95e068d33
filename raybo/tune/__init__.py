"""Ray Tune searcher plugin."""
