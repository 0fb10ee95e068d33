"""raybo's methods and the tuners of other tools, behind one ask/tell protocol."""
