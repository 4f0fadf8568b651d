"""Between a request and a backend: the thread that scores, and the replies that are waited for."""
