"""`python -m npu_watchd` is the program `npu-watchd`."""

from npu_watchd.cli import main

if __name__ == "__main__":
    main()
