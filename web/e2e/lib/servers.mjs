// Starts the built service, and the scripted provider that keeps count of what it was asked for.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const program = process.env.TURND_BIN ?? fileURLToPath(new URL("../../../bin/turnd", import.meta.url));
const startTime = 20_000;
const stopTime = 10_000;

/** A folder that is there until the end of what is done with it. */
export async function withFolder(use) {
  const folder = await mkdtemp(join(tmpdir(), "turnd-e2e-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs a command of turnd to its end and returns what it printed. */
export async function turnd(args, env = {}) {
  const child = spawn(program, args, { env: { PATH: process.env.PATH, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) child[name].on("data", (chunk) => (printed[name] += chunk));
  const status = await new Promise((resolve) => child.once("close", resolve));
  if (status !== 0) throw new Error(`turnd ${args[0]} ended with ${status}: ${printed.stderr}`);
  return printed.stdout;
}

/** Starts a command that serves, and waits for its ready file. */
async function serve(folder, name, args) {
  const file = join(folder, `${name}.json`);
  const child = spawn(program, [...args, "--ready-file", file], {
    env: { PATH: process.env.PATH, HOME: folder },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.on("data", (chunk) => (log = (log + chunk).slice(-20_000)));
  const ended = new Promise((resolve) => child.once("exit", (status) => resolve(status)));
  const ready = await readyFile(file, ended, () => log);
  const stop = async () => {
    child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), stopTime);
    const status = await ended;
    clearTimeout(late);
    return status;
  };
  const kill = () => {
    child.kill("SIGKILL");
    return ended;
  };
  return { ready, stop, kill, log: () => log };
}

async function readyFile(file, ended, log) {
  let over = false;
  void ended.then(() => (over = true));
  for (const deadline = Date.now() + startTime; Date.now() < deadline && !over; ) {
    try {
      return JSON.parse(await readFile(file, "utf8"));
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  throw new Error(`it did not start: ${log()}`);
}

/** The scripted provider, with its control over HTTP. */
export async function startProvider(folder) {
  const { ready, stop } = await serve(folder, "provider", ["scripted-provider", "--listen", "127.0.0.1:0"]);
  const url = `http://${ready.listen}`;
  const control = async (method, path, body) => {
    const response = await fetch(`${url}/_scripted/${path}`, { method, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.headers.get("content-type")?.includes("json") ? response.json() : response.text();
  };
  return {
    url,
    stop,
    counts: () => control("GET", "counts"),
    calls: async () => (await control("GET", "calls")).calls,
    wait: (condition, timeout = "20s") => control("GET", `wait?${condition}&timeout=${timeout}`),
    open: (gate) => control("POST", `gates/${gate}/open`),
    /** Forgets all calls, cuts what runs and plays these rules from now on. */
    play: async (...rules) => {
      await control("POST", "reset");
      if (rules.length > 0) await control("PUT", "script", { rules });
    },
  };
}

/**
 * The service on SQLite in a folder of its own, with a model of the provider's, a careful one that holds what is unclear, and
 * one that answers in the background and can be asked for its answer again.
 */
export async function startTurnd(folder, provider, { name = "turnd", model = "demo", args = [] } = {}) {
  const models = join(folder, `${name}-models.json`);
  const endpoint = {
    wire: "anthropic.messages",
    base_url: provider.url,
    prices: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 },
  };
  const background = { wire: "openai.responses", base_url: provider.url, capabilities: { resume: true, cancel: true } };
  const alone = (endpoint, model) => ({ route: [{ endpoint, model }] });
  await writeFile(models, JSON.stringify({
    version: 1,
    default_model: model,
    endpoints: { scripted: endpoint, careful: { ...endpoint, on_ambiguous: "hold" }, background },
    models: { demo: alone("scripted", "demo"), careful: alone("careful", "careful"), background: alone("background", "background") },
  }));
  const database = `sqlite://${join(folder, `${name}.db`)}`;
  const flags = ["--listen", "127.0.0.1:0", "--models", models, "--data-dir", folder, "--database-url", database, "--backoff", "50ms", "--grace", "1s"];
  const { ready, ...process } = await serve(folder, name, ["serve", "--worker-name", "e2e", ...flags, ...args]);
  return { url: `http://${ready.listen}`, database, ...process };
}
