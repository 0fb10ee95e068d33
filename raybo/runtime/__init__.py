"""Asynchronous evaluation on a Ray cluster."""
