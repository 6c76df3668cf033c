"""How a command says no."""


class Refusal(Exception):
    """Ends a command with its message on the terminal, no traceback, and an exit status.

    Status 2 says that nothing was run; a subclass sets 1 where something ran and failed.
    """

    status = 2
