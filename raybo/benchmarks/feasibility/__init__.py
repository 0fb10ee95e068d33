"""`raybo bench failures`: problems on which trials fail or outcomes are bounded, and tuners."""
