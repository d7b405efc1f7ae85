"""The pages of a person's own password, and of the link that sets one."""
