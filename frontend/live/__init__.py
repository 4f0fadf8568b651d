"""What a console asks for once a second: `GET /v1/live`, from figures in memory, encoded once for all who ask."""
