"""The live table: redrawn in place on a terminal, a line per queue every ten seconds elsewhere."""

import shutil
import sys
import time

from e2e.quickstart.observe import Observer
from e2e.quickstart.scenario import clock

_PREEMPTIONS_SHOWN = 6


class Table:
    def __init__(self, observer: Observer, fleet_gpus: int, stream=sys.stdout):
        self._observer, self._fleet, self._stream = observer, fleet_gpus, stream
        self._live = stream.isatty()
        self._height = 0
        self._next_plain = 0.0
        self._told = 0
        self.peak_use = 0

    def show(self, seconds: float, note: str) -> None:
        """Draws the state at `seconds` after the day began."""
        in_use = self._observer.gpus_in_use()
        self.peak_use = max(self.peak_use, in_use)
        if self._live:
            self._redraw(self._lines(seconds, note, in_use))
        elif time.monotonic() >= self._next_plain:
            self._next_plain = time.monotonic() + 10
            self._plain(seconds, note, in_use)
        if not self._live:
            self._plain_preemptions()

    def _lines(self, seconds: float, note: str, in_use: int) -> list[str]:
        lines = [f"{clock(seconds)}   {note}", "",
                 f"{'queue':<14}{'pending':>8}{'admitted':>9}{'GPUs':>7}{'quota':>7}{'borrowed':>9}{'share':>7}"]
        for row in self._observer.rows():
            lines.append(f"{row.name:<14}{row.pending:>8}{row.admitted:>9}{row.used:>7}{row.nominal:>7}"
                         f"{row.borrowed or '':>9}{self._percent(row.used):>7}")
        lines += ["", f"fleet {self._bar(in_use)} {in_use} of {self._fleet} GPUs, {self._percent(in_use)}", ""]
        recent = self._observer.preemptions[-_PREEMPTIONS_SHOWN:]
        lines.append(f"preempted so far: {len(self._observer.preemptions)} gangs")
        lines += [f"  {p.victim} ({len(p.pods)} pods) by {p.by}: {p.reason}" for p in recent]
        return lines

    def _redraw(self, lines: list[str]) -> None:
        width = shutil.get_terminal_size().columns - 1
        out = f"\x1b[{self._height}A" if self._height else ""
        out += "".join(f"\x1b[K{line[:width]}\n" for line in lines) + "\x1b[J"
        self._height = len(lines)
        self._stream.write(out)
        self._stream.flush()

    def _plain(self, seconds: float, note: str, in_use: int) -> None:
        queues = ", ".join(f"{r.name} {r.pending} pending {r.admitted} admitted {r.used} GPUs"
                           + (f" ({r.borrowed} borrowed)" if r.borrowed else "") for r in self._observer.rows())
        print(f"{clock(seconds)}: {note}; fleet {self._percent(in_use)}; {queues}", file=self._stream, flush=True)

    def _plain_preemptions(self) -> None:
        for p in self._observer.preemptions[self._told:]:
            print(f"  preempted: {p.victim} ({len(p.pods)} pods) by {p.by}: {p.reason}",
                  file=self._stream, flush=True)
            self._told += 1

    def _percent(self, gpus: int) -> str:
        return f"{100 * gpus / self._fleet:.0f}%"

    def _bar(self, gpus: int, width: int = 30) -> str:
        full = round(width * gpus / self._fleet)
        return "[" + "#" * full + "." * (width - full) + "]"
