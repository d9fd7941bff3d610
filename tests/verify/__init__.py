"""The kit as its users meet it: reports, counterexamples, fallbacks, the plugin."""
