"""Tables, plots and HTML reports of a study."""
