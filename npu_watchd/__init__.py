"""npu-watchd: the health daemon of an Ascend NPU node."""

__version__ = "0.1.0"
