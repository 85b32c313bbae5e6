"""Bad input, corrupted files and hostile names lead to one clear error with the fix, or to the quarantine.

The tables stay unchanged.
"""
