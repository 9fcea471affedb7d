"""Shows verdicts and traces: a page that opens offline, the terminal, a notebook, an explorer in the browser."""
