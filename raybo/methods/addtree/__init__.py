"""Add-Tree: conditional spaces."""
