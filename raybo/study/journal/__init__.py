"""The journal of a study: records, files, locks."""
