"""The task that probes a node of a cluster: its code, its packages, and its access to the store.

Ray sends this module with the task, since a node may lack it. So it has no imports at its top, and takes and
returns only built-in types.
"""


def probe(store: str, token: str) -> dict[str, object]:
    """Return the code and the access to the store of the process that runs this function.

    Args:
        store: Folder or address of the store.
        token: From `storage.place.located`.

    Returns:
        `host`; `missing`, the module that cannot be loaded, or ""; and, if nothing is missing, `digest` and
        `versions` of `tasks.sources.Code`, and `sees`, whether the process can publish into the store.
    """
    import platform

    found: dict[str, object] = {"host": platform.node() or "unknown", "missing": ""}
    try:
        import tasks.worker  # noqa: F401  imports everything that a worker needs
        from storage.place.located import store_with
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
