"""Real table metadata: the only folder that imports PyIceberg."""
