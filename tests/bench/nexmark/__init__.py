"""Nexmark: persons, auctions and bids of an auction site, and queries 5, 7, 8, 11 and 12 as jobs."""
