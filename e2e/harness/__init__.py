"""The local control plane that end-to-end tests and the quickstart run on."""
