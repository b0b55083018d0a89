"""The end-to-end tests in a kind cluster, where there is Docker."""
