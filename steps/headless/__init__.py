"""The verbs of the command line without a screen: each returns its exit code and writes through a `Console`."""
