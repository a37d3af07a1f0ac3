"""Layer 4: does one variable change what a server does, beyond what the same server does to itself?"""
