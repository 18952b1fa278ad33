"""The task that probes a node of a cluster: its code, its packages, and whether it sees the store.

Ray sends this module along with the task, since a node may not have it: it imports nothing at its top, and
takes and returns only what Python itself has.
"""


def probe(store: str, token: str) -> dict[str, object]:
    """Return what the process that runs this has of our code and of the store.

    Args:
        store: Folder or address of the store.
        token: From `storage.shared_store_token`.

    Returns:
        `host`; `missing`, the module that cannot be imported, or ""; and only where nothing is missing
        `digest` and `versions` of `tasks.sources.Code`, and `sees`, whether it can publish into the store.
    """
    import platform

    found: dict[str, object] = {"host": platform.node() or "unknown", "missing": ""}
    try:
        import tasks.worker  # noqa: F401  all that a worker needs
        from storage.shared_store_token import store_with
        from tasks.sources import code

        ours = code()
        found |= {
            "digest": ours.digest,
            "versions": ours.versions,
            "sees": store_with(store, token) is not None,
        }
    except ImportError as error:
        found["missing"] = error.name or str(error)
    return found
