"""A question, answered privately: what is measured, what it costs, the noise, and what may be said of it."""
