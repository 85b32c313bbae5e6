"""Read text files: turn bytes into blocks of whole records, blocks into columns of text, and texts into values of a type."""
