"""Proposals, made ahead of demand."""
