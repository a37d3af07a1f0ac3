"""Does a browser play what the engine says? Whole, and streamed, where the header cannot know the length.

python -m benchmarks.engine_browser [--browser chromium]

A server of size tiny speaks; a headless Chromium gets both files from a page and plays each to its end, in
real time. The page says what it saw: how long a file is, and how far it was played. Exit code 1 if one did
not come to its end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from tests.engine_servers import serving

WORDS = 5
PATIENCE_S = 60.0
SEEN = "/seen?"
PAGE = """<script>
async function played(name) {
  const audio = new Audio(URL.createObjectURL(await (await fetch(name)).blob()));
  return new Promise(done => {
    audio.onended = () => done([name, audio.duration, audio.currentTime]);
    audio.onerror = () => done([name, audio.error.message]);
    audio.play().catch(error => done([name, String(error)]));
  });
}
(async () => {
  const seen = [await played("whole.wav"), await played("stream.wav")];
  fetch("/seen?" + encodeURIComponent(JSON.stringify(seen)));
})();
</script>"""


class Page(ThreadingHTTPServer):
    """Serves the page and the files, and hears what the page saw."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.seen: list[list[object]] = []
        self.heard = threading.Event()


class Handler(BaseHTTPRequestHandler):
    """One request of the browser."""

    server: Page

    def do_GET(self) -> None:
        if self.path.startswith(SEEN):
            self.server.seen = json.loads(unquote(self.path.removeprefix(SEEN)))
            self.server.heard.set()
        data = self.server.files.get(self.path, b"")
        self.send_response(200 if data else 404)
        self.send_header("Content-Type", "audio/wav" if self.path.endswith(".wav") else "text/html")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Let a browser play the engine's speech.")
    parser.add_argument("--browser", default="chromium")
    asked = parser.parse_args()
    with serving() as server:
        files = {"/whole.wav": server.speak(WORDS).data, "/stream.wav": server.speak(WORDS, stream=True).data}
    seen = shown(asked.browser, {"/": PAGE.encode(), **files})
    for one in seen:
        print(*one)
    ended = [one for one in seen if len(one) == 3 and one[1] == one[2]]
    sys.exit(0 if len(ended) == len(files) else 1)


def shown(browser: str, files: dict[str, bytes]) -> list[list[object]]:
    """What the page saw: name, seconds, seconds played; or name and error."""
    page = Page(files)
    threading.Thread(target=page.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        options = ("--headless=new", "--no-sandbox", "--autoplay-policy=no-user-gesture-required")
        where = (f"--user-data-dir={profile}", f"http://127.0.0.1:{page.server_port}/")
        command = [browser, *options, *where]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        heard = page.heard.wait(PATIENCE_S)
        process.terminate()
        process.wait()
    page.shutdown()
    if not heard:
        sys.exit(f"{browser} said nothing for {PATIENCE_S:g} s")
    return page.seen


if __name__ == "__main__":
    main()
