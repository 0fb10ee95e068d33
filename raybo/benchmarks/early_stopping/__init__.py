"""What early stopping saves, on recorded curves in simulated time."""
