"""`billion`: a billion records from raw files to checked final results on two cores, resumable where it was stopped."""
