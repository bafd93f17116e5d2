import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

/** What a scripted provider counted. */
export interface Counts {
  readonly requests: number;
  readonly generations: number;
  readonly running: number;
}

/** A turnd of the product's own on SQLite, and the scripted provider that it calls. */
export class Product {
  private constructor(
    readonly baseUrl: string,
    private readonly provider: string,
    private readonly processes: readonly ChildProcess[],
    private readonly folder: string,
  ) {}

  static async start(): Promise<Product> {
    const folder = mkdtempSync(join(tmpdir(), "turnd-"));
    const program = process.env["PRODUCT"] ?? build(folder);
    const [provider, providerAt] = await start(program, ["scripted-provider"]);
    const models = join(folder, "models.yaml");
    writeFileSync(models, modelsFile(providerAt));
    const [server, at] = await start(program, [
      "serve", "--listen", "127.0.0.1:0", "--models", models, "--database-url", `sqlite://${join(folder, "turnd.db")}`,
      "--spool-dir", join(folder, "spool"), "--log-level", "error",
    ]);
    return new Product(`http://${at}`, `http://${providerAt}/_scripted`, [server, provider], folder);
  }

  async stop(): Promise<void> {
    for (const process of this.processes) {
      process.kill("SIGTERM");
      if (process.exitCode === null) await once(process, "exit");
    }
    rmSync(this.folder, { recursive: true });
  }

  /** Has the provider answer by plans, one a request, the last for all that follow. */
  async plan(...plans: object[]): Promise<void> {
    await this.ask("POST", "/reset");
    const rules = plans.map((plan, i) => ({ name: `r${i}`, ...(i < plans.length - 1 && { times: 1 }), plan }));
    await this.ask("PUT", "/script", JSON.stringify({ rules }));
  }

  async open(gate: string): Promise<void> {
    await this.ask("POST", `/gates/${gate}/open`);
  }

  async arrived(gate: string): Promise<void> {
    await this.ask("GET", `/wait?gate=${gate}&arrived=1&timeout=20s`);
  }

  async counts(): Promise<Counts> {
    return JSON.parse(await this.ask("GET", "/counts")) as Counts;
  }

  private async ask(method: string, path: string, body?: string): Promise<string> {
    const response = await fetch(this.provider + path, { method, ...(body !== undefined && { body }) });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return response.text();
  }
}

function build(folder: string): string {
  const program = join(folder, "turnd");
  execFileSync("go", ["build", "-o", program, "./cmd/turnd"], { cwd: resolve(import.meta.dirname, "../../.."), stdio: "inherit" });
  return program;
}

/** Starts a program and waits for its line that says where it listens. */
async function start(program: string, args: string[]): Promise<[ChildProcess, string]> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  const listen = await new Promise<string>((found, failed) => {
    createInterface(child.stdout).on("line", (line) => {
      const at = /listen=(\S+)/.exec(line)?.[1];
      if (at !== undefined) found(at);
    });
    child.once("error", failed);
    child.once("exit", (code) => failed(new Error(`${args[0]} ended with ${code}`)));
  });
  return [child, listen];
}

const modelsFile = (provider: string) => `version: 1
default_model: demo
endpoints:
  local: {wire: anthropic.messages, base_url: "http://${provider}"}
models:
  demo: {route: [{endpoint: local, model: demo}]}
`;
