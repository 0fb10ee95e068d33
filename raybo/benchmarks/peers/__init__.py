"""Other projects' tuners behind the protocol of `rivals.Rival`; one file per project."""
