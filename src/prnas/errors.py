"""A user's mistakes: shown as a message, never as a traceback."""


class UserError(Exception):
    """What was asked cannot be done; the message says why, and what would work."""
