"""Read text files: bytes to blocks of whole records, blocks to columns of text, texts to values of a type."""
