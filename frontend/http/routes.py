"""The table of all HTTP routes of the service, with the scopes that a caller needs. All other routes are refused."""

from enum import StrEnum

from railgun.access.routes import Route, Routes
from railgun.access.scopes import OPEN, PROBE, TOKEN, needs


class ServedBy(StrEnum):
    """The part of the service that answers a route.

    EVENTS: `single_events.py`, without the application; `scoring_route.py` answers the requests that it leaves.
    PROBES: `app.py`.
    PAGES: functions in `frontend/pages/`, which the framework calls (`pages.py`).
    """

    EVENTS = "events"
    PROBES = "probes"
    PAGES = "pages"


READ, DEFINE = needs("read:{stream}"), needs("define:{stream}")
CREATE, REMOVE = needs("define:{body}"), needs("define:{stream}", "operate")
SEND, INSPECT = needs("score:{stream}"), needs("inspect:{stream}")
METRICS, OPERATE = needs("metrics"), needs("operate")

# The OpenAPI description lists the paths in this order.
# fmt: off
ROUTES = Routes((
    Route("POST",   "/v1/streams",                            "create_stream",     ServedBy.PAGES,  CREATE),
    Route("GET",    "/v1/streams",                            "list_streams",      ServedBy.PAGES,  TOKEN),
    Route("GET",    "/v1/streams/{stream}",                   "show_stream",       ServedBy.PAGES,  READ),
    Route("PATCH",  "/v1/streams/{stream}",                   "evolve_stream",     ServedBy.PAGES,  DEFINE),
    Route("DELETE", "/v1/streams/{stream}",                   "drop_stream",       ServedBy.PAGES,  REMOVE),
    Route("POST",   "/v1/streams/{stream}/metrics",           "add_metrics",       ServedBy.PAGES,  DEFINE),
    Route("GET",    "/v1/streams/{stream}/metrics",           "list_metrics",      ServedBy.PAGES,  READ),
    Route("GET",    "/v1/streams/{stream}/metrics/{name}",    "show_metric",       ServedBy.PAGES,  READ),
    Route("DELETE", "/v1/streams/{stream}/metrics/{name}",    "drop_metric",       ServedBy.PAGES,  DEFINE),
    Route("GET",    "/v1/streams/{stream}/metrics/{name}/answered", "show_answered", ServedBy.PAGES, INSPECT),
    Route("POST",   "/v1/streams/{stream}/explain",           "explain",           ServedBy.PAGES,  READ),
    Route("GET",    "/v1/streams/{stream}/plan",              "show_plan",         ServedBy.PAGES,  READ),
    Route("GET",    "/v1/streams/{stream}/values",            "key_values",        ServedBy.PAGES,  INSPECT),
    Route("POST",   "/v1/streams/{stream}/values",            "values_of_keys",    ServedBy.PAGES,  INSPECT),
    Route("GET",    "/v1/streams/{stream}/dead",              "dead_letters",      ServedBy.PAGES,  INSPECT),
    Route("GET",    "/v1/streams/{stream}/samples",           "last_events",       ServedBy.PAGES,  INSPECT),
    Route("GET",    "/v1/status",                             "status",            ServedBy.PAGES,  METRICS),
    Route("GET",    "/v1/whoami",                             "whoami",            ServedBy.PAGES,  TOKEN),
    Route("GET",    "/v1/log",                                "change_log",        ServedBy.PAGES,  OPERATE),
    Route("GET",    "/v1/support",                            "bundle",            ServedBy.PAGES,  OPERATE),
    Route("POST",   "/v1/streams/{stream}/deepening",         "begin_deepening",   ServedBy.PAGES,  DEFINE),
    Route("GET",    "/v1/streams/{stream}/deepening",         "show_deepening",    ServedBy.PAGES,  READ),
    Route("DELETE", "/v1/streams/{stream}/deepening",         "give_up_deepening", ServedBy.PAGES,  DEFINE),
    Route("POST",   "/v1/streams/{stream}/deepening/install", "install_deepening", ServedBy.PAGES,  DEFINE),
    Route("GET",    "/v1/cluster",                            "show_cluster",      ServedBy.PAGES,  METRICS),
    Route("GET",    "/v1/cluster/plan",                       "what_if",           ServedBy.PAGES,  METRICS),
    Route("POST",   "/v1/cluster/nodes/{node}/drain",         "drain",             ServedBy.PAGES,  OPERATE),
    Route("POST",   "/v1/cluster/nodes/{node}/undrain",       "undrain",           ServedBy.PAGES,  OPERATE),
    Route("POST",   "/v1/cluster/accept-cut",                 "accept_cut",        ServedBy.PAGES,  OPERATE),
    Route("POST",   "/v1/cluster/accept-gap",                 "accept_gap",        ServedBy.PAGES,  OPERATE),
    Route("GET",    "/",                                      "show_console",      ServedBy.PAGES,  OPEN),
    Route("GET",    "/console/{file}",                        "console_file",      ServedBy.PAGES,  OPEN),
    Route("GET",    "/openapi.json",                          "openapi",           ServedBy.PAGES,  OPEN),
    Route("GET",    "/docs",                                  "docs",              ServedBy.PAGES,  OPEN),
    Route("GET",    "/docs.css",                              "docs_style",        ServedBy.PAGES,  OPEN),
    Route("POST",   "/v1/streams/{stream}/events",            "score",             ServedBy.EVENTS, SEND),
    Route("GET",    "/healthz",                               "alive",             ServedBy.PROBES, PROBE),
    Route("GET",    "/readyz",                                "ready",             ServedBy.PROBES, PROBE),
    Route("GET",    "/metrics",                               "metrics",           ServedBy.PROBES, METRICS),
    Route("GET",    "/v1/live",                               "live",              ServedBy.PROBES, TOKEN),
))
# fmt: on

(SCORE,) = ROUTES.rows_of(ServedBy.EVENTS)
