"""`land FEED`: new rows of the feed's sources become landings. Begin with the module `land`."""
