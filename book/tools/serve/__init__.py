"""The live book: a server on this machine alone, where a page runs its chapter again.

`guard` decides which requests are answered, `form` what a reader may ask for, `jobs` who waits and
who runs, `worker` is the process that runs a chapter. `chapter_pages` and `tables` answer requests,
`server` ties all together.
"""
