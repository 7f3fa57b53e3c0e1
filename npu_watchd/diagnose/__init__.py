"""Why a training job died: clues from logs, journal and daemon, weighed; no guess where they do not suffice."""
