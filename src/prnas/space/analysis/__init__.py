"""The space looked at: counts, distances, statistics."""
