"""The paper's experiments: protocol, runner, tables and figures."""
