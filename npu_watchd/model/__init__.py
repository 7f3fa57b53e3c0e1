"""The words of the domain: frozen data, units in the field names, no behaviour that needs a clock or a file."""
