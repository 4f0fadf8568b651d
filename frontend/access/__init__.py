"""What the front-end does with a decision about a request: who asks, how much they may send, what they are told."""
