"""Who may do what over HTTP: the tables of routes, scopes, tokens, browsers, and the decision about a request."""
