"""Faults injected into running studies, and the audit of what they lose."""
