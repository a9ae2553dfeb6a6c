"""The work of each verb, in a file of the name that its options have in `heron.cli.verbs`, loaded when it runs."""
