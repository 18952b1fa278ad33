"""What figures of several papers share: panels of traces, the stored answers behind them, and the drawing."""
