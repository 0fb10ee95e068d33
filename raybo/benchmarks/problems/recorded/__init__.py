"""Problems out of recorded trainings: complete tables, pools of configs, fitted surrogates."""
