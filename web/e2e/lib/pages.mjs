// Serves the pages of examples/ in front of a service, each at an origin of its own that passes calls on.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { preview } from "vite";

const path = (to) => fileURLToPath(new URL(`../../../${to}`, import.meta.url));

/** The page with useChat as it was built, behind a proxy of Vite's. */
export async function startUseChat(server) {
  const serving = await preview({
    root: path("examples/usechat"),
    configFile: false,
    logLevel: "silent",
    build: { outDir: path("bin/usechat") },
    preview: { host: "127.0.0.1", port: 0, proxy: { "/turns.v1": server.url } },
  });
  return { url: `http://127.0.0.1:${serving.httpServer.address().port}`, stop: () => serving.close() };
}

/** The page with an EventSource, behind the proxy that is part of the example. */
export async function startEventSource(server) {
  const child = spawn(path("bin/eventsource"), ["--listen", "127.0.0.1:0", "--turnd", server.url], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit");
  const lines = createInterface(child.stdout);
  const [url] = await Promise.race([once(lines, "line"), ended.then(() => Promise.reject(new Error("eventsource did not start")))]);
  return {
    url,
    stop: async () => {
      child.kill("SIGTERM");
      await ended;
    },
  };
}
