"""The inbox, the lists, the audit page and the sweeper with a thousand cards, and with a million beside five that are
decided: `make bench INBOX=1`."""
