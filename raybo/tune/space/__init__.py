"""Ray Tune's search spaces as raybo's."""
