"""Acting on a scheduler, where the config says so: only on marks that we made ourselves."""
