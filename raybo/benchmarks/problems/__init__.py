"""Problems to optimise."""
