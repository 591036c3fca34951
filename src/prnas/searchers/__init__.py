"""Searchers: methods that learn nothing but the scores of whole cells."""
