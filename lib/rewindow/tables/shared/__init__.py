"""What both table adapters share: names, publications, audits, comparisons. No table is opened here."""
