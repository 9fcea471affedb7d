"""The same search as a Spark job: for spaces that do not fit into one machine, or that must survive its end."""
