"""A thread that does something while a test looks elsewhere."""

import threading

from e2e.harness.api import ApiError


class Background(threading.Thread):
    """Runs `work` from enter to exit; what it failed with is raised at the exit."""

    def __init__(self, name: str):
        super().__init__(daemon=True, name=name)
        self.stop_asked = threading.Event()
        self.failure: Exception | None = None

    def work(self) -> None:
        """Until it is done or `stop_asked`."""
        raise NotImplementedError

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_) -> None:
        self.stop_asked.set()
        self.join()
        if self.failure and kind is None:
            raise self.failure

    def run(self) -> None:
        try:
            self.work()
        except (ApiError, OSError) as error:
            self.failure = error
