"""A process that writes a climb into a database and says what is safely there, until somebody kills it.

`python -m tests.memory.writing DATABASE`: a line for each batch that the store has taken: the count.
"""

from __future__ import annotations

import sys
from pathlib import Path

from npu_watchd.memory.backlog import Batch
from npu_watchd.memory.history import History
from npu_watchd.memory.store import Store
from npu_watchd.model.finding import Event
from npu_watchd.model.reading import Failure
from tests.memory.past import CHIP, DOUBLE, ERRORS, chip, hbm, node


def main(path: Path) -> None:
    store = Store.open(path)
    assert not isinstance(store, Failure), store
    loaded = store.load()
    assert not isinstance(loaded, Failure), loaded
    history, number = History.restore(loaded.history), loaded.next_event
    count = int(history.series(ERRORS, CHIP).get(DOUBLE, 0))
    while True:
        count += 1
        history.observe(node(chip(memory_errors=hbm(count))), 1000.0 + 60.0 * count)
        event = Event(number, 1000.0 + 60.0 * count, "counted", f"{count} errors " * 20, device_id="3")
        number += 1
        assert store.write(Batch(history.changes(), (event,))) is None
        print(count, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
