"""Acquisition functions and how they are maximised."""
