"""Ascend error codes: what a code says, how bad the vendor takes it for, and when its return makes it worse."""
