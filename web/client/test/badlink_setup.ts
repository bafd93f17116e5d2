import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  export interface ProvidedContext {
    badlink: string;
  }
}

/** Builds and starts what plays bad links, which ends with its input. */
export default async function setup(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "badlink-"));
  const program = join(folder, "badlink");
  const root = resolve(import.meta.dirname, "../../..");
  execFileSync("go", ["build", "-o", program, "./client/clienttest/badlink/serve"], { cwd: root, stdio: "inherit" });
  const server = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
  const [control] = await new Promise<string[]>((found, failed) => {
    createInterface(server.stdout).once("line", (line) => found([line]));
    server.once("error", failed);
    server.once("exit", (code) => failed(new Error(`badlink ended with ${code}`)));
  });
  project.provide("badlink", control ?? "");
  return () => {
    server.stdin.end();
    rmSync(folder, { recursive: true });
  };
}
