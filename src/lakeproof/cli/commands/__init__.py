"""One file per command: parse arguments, wire, print, choose the exit code."""
