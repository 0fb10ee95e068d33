"""Evaluations on Ray workers."""
