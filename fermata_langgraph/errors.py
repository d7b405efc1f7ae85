class ConcurrentWriter(Exception):
    """Somebody else wrote to the thread after the writer had read it: nothing was written. Read it again."""

    def __init__(self, thread_id: str, namespace: str) -> None:
        where = f"{thread_id!r}, namespace {namespace!r}" if namespace else repr(thread_id)
        super().__init__(f"thread {where} was written by somebody else since it was read")
        self.thread_id = thread_id
        self.namespace = namespace
