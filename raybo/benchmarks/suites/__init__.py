"""`raybo bench suite`: problems of one kind on which every tuner is scored alike."""
