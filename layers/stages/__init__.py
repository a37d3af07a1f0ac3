"""The stage ledger: which stage holds the requests, at work or waiting."""
