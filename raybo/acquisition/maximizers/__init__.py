"""Maximizers of an acquisition over a box."""
