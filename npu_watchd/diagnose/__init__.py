"""Why a job died, whether the next one may start, and what the vendor's support asks for."""
