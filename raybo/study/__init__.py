"""Ask/tell state machine, its trials and the journal."""
