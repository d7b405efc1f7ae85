"""One measurement in a process of its own: `python -m benchmarks.measure PEER FUNCTION URL JSON` prints JSON.

So no peer's threads, caches or imports disturb another's figures.
"""

import importlib
import json
import os
import sys

import django

if __name__ == "__main__":
    peer, function, url, parameters = sys.argv[1:]
    if "DJANGO_SETTINGS_MODULE" in os.environ:  # Fermata's models want it before they are imported
        django.setup()
    module = importlib.import_module(f"benchmarks.peers.{peer}")
    print(json.dumps(getattr(module, function)(url, **json.loads(parameters))), flush=True)
