"""Tests of raybo, in folders as the package has them."""
