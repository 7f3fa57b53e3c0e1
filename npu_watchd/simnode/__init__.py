"""The simulated node: a scenario → its state at time t → the text that the tools print → executables on a PATH.

Nothing but `cli.py demo` and the tests imports it; the daemon meets it as ordinary executables in an ordinary config.
"""
