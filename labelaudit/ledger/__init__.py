"""The ledger: every checkable statement of the paper, with the check that ran and its verdict."""
