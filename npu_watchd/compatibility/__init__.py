"""Which versions of driver, CANN and frameworks belong together, by the vendor's own tables."""
