"""How a post leaves: the addresses that it may go to, its words and signature, and one HTTP request."""
