"""Facts about a trace, as pure functions: steps, device states, host states, links, idle causes."""
