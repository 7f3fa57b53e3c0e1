"""The simulated node: a scenario → its state at time t → the text that the tools print → executables on a PATH.

Nothing but `cli.py demo`, the tests and tools/demo_stack.py imports it; the daemon meets it as ordinary executables in
an ordinary config.
"""
