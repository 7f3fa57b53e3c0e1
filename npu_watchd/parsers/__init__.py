"""Text in, records out: no I/O, no clock, no logging. Every module here raises ParseError and nothing else."""
