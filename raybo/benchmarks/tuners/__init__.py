"""raybo's methods and other tuners, behind one interface."""
