"""Problems, tuners and the tables of the papers."""
