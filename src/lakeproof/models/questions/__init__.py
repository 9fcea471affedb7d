"""What is asked of a model as a whole: which commands get in each other's way, and why each check is there."""
