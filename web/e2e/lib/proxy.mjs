// A proxy as there are some between browsers and services: it loses answers, and ends streams in good order before their time.
import { createServer, request } from "node:http";

const stream = /text\/event-stream|application\/connect\+/;

/**
 * Passes on to a server what comes to its own address, but loses the answers to the first posts, and ends each stream after so
 * many bytes. What it does wrong can be changed, and is counted.
 */
export async function startProxy(server, { lose = 0, endAfter = Infinity } = {}) {
  const faults = { lose, endAfter };
  const done = { lost: 0, ended: 0 };
  const proxy = createServer((asked, answer) => {
    const passed = request(new URL(asked.url, server.url), { method: asked.method, headers: asked.headers, agent: false });
    answer.on("close", () => passed.destroy());
    passed.on("error", () => answer.destroy());
    passed.on("response", (got) => {
      if (asked.method === "POST" && done.lost < faults.lose) {
        done.lost++;
        answer.destroy();
        return;
      }
      answer.writeHead(got.statusCode, got.headers);
      const limit = stream.test(got.headers["content-type"]) ? faults.endAfter : Infinity;
      let bytes = 0;
      got.on("data", (chunk) => {
        bytes += chunk.length;
        answer.write(chunk);
        if (bytes < limit) return;
        done.ended++;
        got.destroy();
        answer.end();
      });
      got.on("end", () => answer.end());
      got.on("error", () => answer.destroy());
    });
    asked.pipe(passed);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${proxy.address().port}`,
    faults,
    done,
    stop: () => {
      proxy.closeAllConnections();
      return new Promise((resolve) => proxy.close(resolve));
    },
  };
}
