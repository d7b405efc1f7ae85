"""Every write. A file for each subject; each service owns its transaction unless it takes a cursor."""
