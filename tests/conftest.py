"""What every test shares: Hypothesis tries the same examples on every run.

`pytest --hypothesis-profile=random` looks for new ones.
"""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("random", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile("fixed")
