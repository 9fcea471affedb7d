"""Which first tables a jobs file is tried with: the values of each column, and the rows made of them."""
