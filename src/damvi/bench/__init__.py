"""The paper's experiments: a resumable runner, and what is made of its cells."""
