"""Access over HTTP: routes, scopes, tokens, TLS, the rules for browsers, and the decision about each request."""
