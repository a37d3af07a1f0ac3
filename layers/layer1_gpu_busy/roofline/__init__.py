"""How fast a card can possibly be, and how far what was measured is from it."""
