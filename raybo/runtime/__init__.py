"""Runs studies on a Ray cluster, asynchronously."""
