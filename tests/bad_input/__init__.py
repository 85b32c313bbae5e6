"""Bad input, corrupted files and hostile names: one clear error with the fix, or the quarantine, and tables as before."""
