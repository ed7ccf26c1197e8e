"""What rules ask about a trace: facts worked out once, when the first rule asks for them."""
