"""An open leaderboard: ours and outsiders at equal budgets, on tables new to all."""
