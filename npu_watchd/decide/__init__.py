"""What a cycle makes of the readings."""
