"""One file a performance bug: its documentation, its check, its advice. `torchdiag.diagnosis.discovery` finds them."""
