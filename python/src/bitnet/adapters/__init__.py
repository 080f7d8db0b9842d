"""bitnet in the frameworks of others, each of which is imported only with its module here."""
