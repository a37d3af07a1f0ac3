"""Layer 5: are the answers still the same, and was the changed path run at all?"""
