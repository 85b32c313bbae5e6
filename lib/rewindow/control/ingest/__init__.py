"""`land FEED`: what is new in the feed's sources becomes landings. Begin with `command`."""
