"""Record, plan, replay: from the allocations of a run to runs that allocate nothing.

::

    Recorder -- problem() --> Problem -- plan() --> Plan --> Arena
    what was allocated        when and how much     where    the memory itself

A run is recorded once, with a name for every place that allocates (its site). The same site asks
again in the next run, and an arena gives it the bytes that the plan has for it. No framework is
needed here, and none is imported.

>>> from dsa import plan
>>> recorder = Recorder()
>>> x = recorder.allocate("conv", 4096)
>>> y = recorder.allocate("relu", 4096)
>>> recorder.free(x)
>>> z = recorder.allocate("pool", 1024)
>>> arena = Arena(plan(recorder.problem(), alignment=64))
>>> arena.plan.peak
8192
>>> with arena.run():
...     for site, size in (("conv", 4096), ("relu", 4096)):
...         id = arena.allocate(site, size)
...         arena.view(id, (32, 32), "f4")[:] = 1
>>> print(arena.tally)
1 run: 2 allocations served as planned, up to byte 8192; 2 still live at the end
"""

from dsa.replay.arena import Arena, Tally
from dsa.replay.formats import read_snapshot, read_trace
from dsa.replay.recorder import Recorder, Repairs

__all__ = ["Arena", "Recorder", "Repairs", "Tally", "read_snapshot", "read_trace"]
