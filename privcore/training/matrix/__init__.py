"""Matrix mechanisms: noise that is correlated between the steps of a training run."""
