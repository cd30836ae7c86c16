"""A model server of tinygrad that answers by HTTP on this machine: DEV says which kind of device computes.

--model FILE is the model, a file of safetensors; --make M writes one of M MiB there and ends. The first line tells the
port. GET /answer?at=N is the network's output for the words at N, as JSON; GET /end reads the model back and ends.
"""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlparse

import numpy as np
from tinygrad import Tensor, TinyJit, Variable, nn

from told import checksum, option, tell

MODEL, MAKE, WORDS, WIDTH, HIDDEN = option("model", "model"), option("make", 0), 32, 64, 256


class Model:
    def __init__(self, rows):
        self.table = Tensor.empty(rows, WIDTH)
        self.layers = [Tensor.empty(WIDTH, HIDDEN), Tensor.empty(HIDDEN, WIDTH)]

    def __call__(self, at):
        words = self.table.shrink(((at, at + WORDS), None)).reshape(WORDS, WIDTH)
        return ((words @ self.layers[0]).relu() @ self.layers[1]).sum(0)


if MAKE:
    random = np.random.default_rng(11)
    shapes = {"table": ((MAKE << 20) // (4 * WIDTH), WIDTH), "layers.0": (WIDTH, HIDDEN), "layers.1": (HIDDEN, WIDTH)}
    nn.state.safe_save(
        {n: Tensor(random.standard_normal(s, dtype=np.float32) / WIDTH**0.5) for n, s in shapes.items()}, MODEL
    )
    raise SystemExit
weights = nn.state.safe_load(MODEL)
model = Model(weights["table"].shape[0])
nn.state.load_state_dict(model, weights, verbose=False)
last = model.table.shape[0] - WORDS


@TinyJit
def answer(at):
    return model(at).realize()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        url = urlparse(self.path)
        if url.path == "/end":
            self.server.ended = True
            self.reply({})
        elif url.path == "/answer":
            at = int(parse_qs(url.query)["at"][0]) % last
            self.reply({"answer": answer(Variable("at", 0, last).bind(at)).tolist()})
        else:
            self.send_error(404)

    def reply(self, thing):
        body = json.dumps(thing).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
server.ended = False
tell("ready", port=server.server_port, rows=model.table.shape[0])
while not server.ended:
    server.handle_request()
tell("end", data=checksum(model.table.numpy()))
