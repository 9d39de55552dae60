"""Around a running agent: before a step, after a step, on overflow; and a small agent built on it."""
