"""Client of the ECG role: sends records to a board, scores and draws what comes back."""
