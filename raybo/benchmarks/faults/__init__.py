"""Faults injected into running studies."""
