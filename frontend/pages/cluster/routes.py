"""Shows the nodes of a cluster over HTTP, with their copies of tasks; shows what a change would move; empties nodes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import Depends, Request

from frontend.access.audit import note
from frontend.backend.cluster import ClusterOperations
from frontend.backend.cluster import GapOrder as Order
from frontend.pages.cluster.models import (
    AcceptedCut,
    AcceptedGap,
    Cluster,
    ClusterNode,
    Consequences,
    Drain,
    GapOrder,
    OneTask,
)
from frontend.pages.handlers import PageHandler, PageHandlers
from frontend.pages.requests import PROBLEMS, body_of, checked, no_parameters, read_json
from frontend.problems import OrderStandsError, refusal
from railgun.catalog.errors import DefinitionError
from railgun.catalog.tables import Table

_PARTITION_MAX = 2**31 - 1
_TASK = ("stream", "partitioner", "partition")
_NO_CLUSTER = (
    "this server scores in its own process and has no nodes; "
    "`railgun frontend` and `railgun node` make a cluster"
)


def cluster(operations: ClusterOperations | None) -> dict[str, PageHandler]:
    """Return the handlers of these routes, by name. operations: None if this server has no nodes."""
    page = PageHandlers(responses=PROBLEMS)

    @page(response_model=Cluster, response_model_exclude_unset=True, dependencies=[Depends(no_parameters)])
    async def show_cluster() -> dict[str, Any]:
        """Nodes, copies of tasks, and who leads."""
        return await _served(operations).overview()

    @page(response_model=Consequences, response_model_exclude_unset=True)
    async def what_if(request: Request, what_if: str = "") -> dict[str, Any]:
        """What a change would move: `what_if` is remove=NODE, add=NUMBER or copies=NUMBER. Nothing is changed."""
        for name in request.query_params:
            if name != "what_if":
                detail = f"unknown parameter {name[:80]!r}; this route takes what_if"
                raise refusal(422, detail, [(("query", name[:80]), detail)])
        return await _served(operations).what_if(what_if)

    @page(
        response_model=ClusterNode,
        response_model_exclude_unset=True,
        openapi_extra=body_of(Drain, is_required=False),
        dependencies=[Depends(no_parameters)],
    )
    async def drain(node: str, request: Request) -> dict[str, Any]:
        """Empty a node: its copies are made elsewhere, then go. Answers once that is accepted; 409 says why not."""
        body = await read_json(request) if await request.body() else {}
        fewer_copies = checked(_fewer_copies, body)
        with _noted(request, f"drain of {node}" + (" with fewer copies" if fewer_copies else "")):
            return await _served(operations).drain(node, fewer_copies=fewer_copies)

    @page(
        response_model=ClusterNode,
        response_model_exclude_unset=True,
        dependencies=[Depends(no_parameters)],
    )
    async def undrain(node: str, request: Request) -> dict[str, Any]:
        """Use a node again that was to be emptied."""
        with _noted(request, f"undrain of {node}"):
            return await _served(operations).undrain(node)

    _accept_losses(page, operations)
    return page.by_name


def _accept_losses(page: PageHandlers, operations: ClusterOperations | None) -> None:
    """Add the handlers of orders to go on without records of a log."""

    @page(response_model=AcceptedCut, openapi_extra=body_of(OneTask), dependencies=[Depends(no_parameters)])
    async def accept_cut(request: Request) -> dict[str, Any]:
        """Have a task go on without records at the end of its log that the broker has lost, though they were answered.

        Where its topic was deleted or made anew, the task begins anew. 409 where no copy has found such a loss; also
        where the loss is accepted now, and the task needs `accept-gap` to go on.
        """
        task = checked(_one_task, await read_json(request))
        with _noted(request, "accept-cut of {}/{}/{}".format(*task)):
            return await _served(operations).accept_cut(*task)

    @page(response_model=AcceptedGap, openapi_extra=body_of(GapOrder), dependencies=[Depends(no_parameters)])
    async def accept_gap(request: Request) -> dict[str, Any]:
        """Have a task go on behind a gap: its log no longer reaches the state of any copy.

        409 where a copy goes on, another one may have a newer state, or the gap is not the one in the order.
        """
        (stream, partitioner, partition), order = checked(_gap_order, await read_json(request))
        accept = _served(operations).accept_gap
        if order.is_asked:
            return await accept(stream, partitioner, partition, order)
        with _noted(request, f"accept-gap of {stream}/{partitioner}/{partition}"):
            return await accept(stream, partitioner, partition, order)


@contextmanager
def _noted(request: Request, what: str) -> Iterator[None]:
    """Log the order that the block gives, unless it is refused."""
    try:
        yield
    except OrderStandsError:
        note(request.scope, what)
        raise
    note(request.scope, what)


def _served(operations: ClusterOperations | None) -> ClusterOperations:
    """Return the operations. Raises ProblemError (409) if the server scores in its own process."""
    if operations is None:
        raise refusal(409, _NO_CLUSTER)
    return operations


def _gap_order(body: object) -> tuple[tuple[str, str, int], Order]:
    table = Table(body, (), (*_TASK, "from", "first", "offset", "dry_run"))
    agreed = None
    if table.has("first") or table.has("offset"):
        agreed = _offset(table, "first"), _offset(table, "offset")
    return _task_of(table), Order(table.text("from") or "", agreed, _flag(table, "dry_run"))


def _offset(table: Table, key: str) -> int:
    table.required(key, "an offset that a dry run has shown; first and offset come together")
    return table.integer(key, 0, 0, 2**63 - 1)


def _one_task(body: object) -> tuple[str, str, int]:
    return _task_of(Table(body, (), _TASK))


def _task_of(table: Table) -> tuple[str, str, int]:
    for key in _TASK:
        table.required(key, "a part of the task's name")
    return (
        table.text("stream") or "",
        table.text("partitioner") or "",
        table.integer("partition", 0, 0, _PARTITION_MAX),
    )


def _fewer_copies(body: object) -> bool:
    return _flag(Table(body, (), ("fewer_copies",)), "fewer_copies")


def _flag(table: Table, key: str) -> bool:
    said = table.get(key)
    if said is not None and not isinstance(said, bool):
        raise DefinitionError((key,), "true or false belongs here")
    return bool(said)
