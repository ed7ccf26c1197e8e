"""`python -m torchdiag` is `torchdiag`."""

from torchdiag.cli.main import main

main()
