"""Compiled inner loops, imported on first use so that `import labelaudit` stays light."""
