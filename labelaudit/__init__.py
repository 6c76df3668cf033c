"""Audit how much a release of private labels helps an attacker guess them."""
