"""A table as its files say it, read anew and without any cache: what an audit judges and a repair starts from."""
