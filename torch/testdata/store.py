# A TCPStore, and what a script says to it: the port first; then each line of input is a call, and the answer is a line of JSON.
import datetime
import json
import os
import sys

import torch.distributed as dist

libuv = {"use_libuv": False} if os.environ.get("USE_LIBUV") == "0" else {}
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=datetime.timedelta(seconds=60), **libuv)
print(store.port, flush=True)
for line in sys.stdin:
    method, *args = json.loads(line)
    value = getattr(store, method)(*args)
    if isinstance(value, bytes):
        value = value.decode()
    print(json.dumps(value), flush=True)
