"""End-to-end tests of muster on a real control plane, and the quickstart that shares their harness."""
