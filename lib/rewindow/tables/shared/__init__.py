"""The protocol of a warehouse, and the code that both adapters share. No table is opened here."""
