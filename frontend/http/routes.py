"""Every HTTP route of the service. What is not a row here is refused."""

from enum import StrEnum

from railgun.wire.http_routes import Route, Routes


class ServedBy(StrEnum):
    """The part of the service that answers.

    EVENTS: `single_events.py`, beside the application; for the requests that it leaves, `scoring_route.py`.  PROBES:
    `app.py`.  PAGES: functions that the framework calls (`pages.py`, the routes of `registry`, `cluster` and `values`).
    """

    EVENTS = "events"
    PROBES = "probes"
    PAGES = "pages"


# The OpenAPI description lists the paths in this order.
# fmt: off
ROUTES = Routes((
    Route("POST",   "/v1/streams",                            "create_stream",     ServedBy.PAGES),
    Route("GET",    "/v1/streams",                            "list_streams",      ServedBy.PAGES),
    Route("GET",    "/v1/streams/{stream}",                   "show_stream",       ServedBy.PAGES),
    Route("PATCH",  "/v1/streams/{stream}",                   "evolve_stream",     ServedBy.PAGES),
    Route("DELETE", "/v1/streams/{stream}",                   "drop_stream",       ServedBy.PAGES),
    Route("POST",   "/v1/streams/{stream}/metrics",           "add_metrics",       ServedBy.PAGES),
    Route("GET",    "/v1/streams/{stream}/metrics",           "list_metrics",      ServedBy.PAGES),
    Route("GET",    "/v1/streams/{stream}/metrics/{name}",    "show_metric",       ServedBy.PAGES),
    Route("DELETE", "/v1/streams/{stream}/metrics/{name}",    "drop_metric",       ServedBy.PAGES),
    Route("POST",   "/v1/streams/{stream}/explain",           "explain",           ServedBy.PAGES),
    Route("GET",    "/v1/streams/{stream}/values",            "key_values",        ServedBy.PAGES),
    Route("POST",   "/v1/streams/{stream}/values",            "values_of_keys",    ServedBy.PAGES),
    Route("GET",    "/v1/status",                             "status",            ServedBy.PAGES),
    Route("POST",   "/v1/streams/{stream}/deepening",         "begin_deepening",   ServedBy.PAGES),
    Route("GET",    "/v1/streams/{stream}/deepening",         "show_deepening",    ServedBy.PAGES),
    Route("DELETE", "/v1/streams/{stream}/deepening",         "give_up_deepening", ServedBy.PAGES),
    Route("POST",   "/v1/streams/{stream}/deepening/install", "install_deepening", ServedBy.PAGES),
    Route("GET",    "/v1/cluster",                            "show_cluster",      ServedBy.PAGES),
    Route("GET",    "/v1/cluster/plan",                       "what_if",           ServedBy.PAGES),
    Route("POST",   "/v1/cluster/nodes/{node}/drain",         "drain",             ServedBy.PAGES),
    Route("POST",   "/v1/cluster/nodes/{node}/undrain",       "undrain",           ServedBy.PAGES),
    Route("POST",   "/v1/cluster/accept-cut",                 "accept_cut",        ServedBy.PAGES),
    Route("GET",    "/openapi.json",                          "openapi",           ServedBy.PAGES),
    Route("GET",    "/docs",                                  "docs",              ServedBy.PAGES),
    Route("POST",   "/v1/streams/{stream}/events",            "score",             ServedBy.EVENTS),
    Route("GET",    "/healthz",                               "alive",             ServedBy.PROBES),
    Route("HEAD",   "/healthz",                               "alive",             ServedBy.PROBES),
    Route("GET",    "/readyz",                                "ready",             ServedBy.PROBES),
    Route("HEAD",   "/readyz",                                "ready",             ServedBy.PROBES),
    Route("GET",    "/metrics",                               "metrics",           ServedBy.PROBES),
    Route("HEAD",   "/metrics",                               "metrics",           ServedBy.PROBES),
))
# fmt: on

(SCORE,) = ROUTES.rows_of(ServedBy.EVENTS)
