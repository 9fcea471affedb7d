"""Values that no step and no property can tell apart."""
