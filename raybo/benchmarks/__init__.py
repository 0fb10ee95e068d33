"""Problems, rivals and the tables of the papers."""
