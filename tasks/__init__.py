"""Tasks: batches of points, the child process that guards each evaluation, and the engines that run them."""
