"""Model definitions by domain: random weights, synthetic inputs, nothing downloaded."""
