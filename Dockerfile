# Railgun as an image: `docker build -t railgun .`. docker-compose.yml runs a cluster of it.
# On a network it starts with tokens (docs/security.md), or with RAILGUN_HTTP__ANONYMOUS=true: anybody may do anything.
FROM python:3.11-slim-bookworm

# Nobody's account: what runs here owns its data folder and nothing else.
RUN useradd --uid 10001 --create-home --home-dir /data railgun

WORKDIR /app
COPY requirements.lock ./
RUN python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes --only-binary :all: \
    -r requirements.lock
COPY LICENSE README.md ./
COPY reservoir reservoir
COPY railgun railgun
COPY frontend frontend

# Kernels are compiled for the processor that they run on, once, into the data folder.
ENV PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=/data/cache
# Asked by the health check, with TLS or without; of a node it is the port of its metrics.
ENV RAILGUN_HEALTH_URL=http://127.0.0.1:8080/healthz

USER railgun
VOLUME /data
EXPOSE 8080 9404
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=180s --retries=3 \
    CMD ["python", "-m", "railgun.health"]

ENTRYPOINT ["python", "-m", "railgun"]
CMD ["serve", "--data", "/data/railgun", "--http", "0.0.0.0:8080"]
