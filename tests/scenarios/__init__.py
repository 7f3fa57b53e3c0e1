"""A labelled campaign: faults and healthy-but-ugly days, with what the daemon has to say of each, and nothing else."""
