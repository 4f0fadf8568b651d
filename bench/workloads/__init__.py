"""Work that others have described, by this project's own generators and definitions, on one engine."""
