"""From what a search saw to what it says: properties judged, violations traced."""
