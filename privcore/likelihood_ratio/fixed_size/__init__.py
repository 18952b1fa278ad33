"""Upper ends of batches of a fixed size against adversaries who adapt: profiles by angle, and stages."""
