import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "..");
const tsc = join(root, "../node_modules/.bin/tsc");

interface Packed {
  readonly files: readonly { readonly path: string }[];
}

interface Manifest {
  readonly exports: Record<string, { readonly types: string; readonly default: string }>;
  readonly dependencies: Record<string, string>;
}

test("what would be published is whole, and nothing else", { timeout: 120_000 }, async () => {
  const pack = ["pack", "--dry-run", "--json", "--silent", "--ignore-scripts=false"]; // packing builds
  const [packed] = JSON.parse(execFileSync("npm", pack, { cwd: root, encoding: "utf8" })) as Packed[];
  const files = packed?.files.map(({ path }) => path) ?? [];
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
  const wanted = Object.values(manifest.exports).flatMap(({ types, default: code }) => [types, code]);
  expect(files).toEqual(expect.arrayContaining([...wanted.map((path) => path.replace("./", "")), "LICENSE", "README.md", "package.json"]));
  expect(files.filter((path) => !/^(dist\/.*\.(js|d\.ts)|LICENSE|README\.md|package\.json)$/.test(path))).toEqual([]);

  const imported = files
    .filter((path) => path.endsWith(".js"))
    .flatMap((path) => [...readFileSync(join(root, path), "utf8").matchAll(/^(?:import|export) .*from "([^."][^"]*)"/gm)])
    .map(([, from = ""]) => from.split("/").slice(0, from.startsWith("@") ? 2 : 1).join("/"));
  expect([...new Set(imported)].sort()).toEqual(Object.keys(manifest.dependencies).sort());
  const main = (await import(join(root, "dist/index.js"))) as object;
  const ai = (await import(join(root, "dist/ai/index.js"))) as object;
  expect(main).toHaveProperty("createTurnd");
  expect(ai).toHaveProperty("TurndChatTransport");
});

test("the examples of the README are as the types have them", { timeout: 60_000 }, () => {
  const folder = mkdtempSync(join(root, "test/.readme-"));
  try {
    const blocks = [...readFileSync(join(root, "README.md"), "utf8").matchAll(/^```(tsx?)\n(.*?)^```/gms)];
    expect(blocks.length).toBeGreaterThan(3);
    const files = blocks.map(([, kind], i) => `example${i}.${kind}`);
    blocks.forEach(([, , code = ""], i) => writeFileSync(join(folder, files[i] ?? ""), code));
    const paths = { "@turnd/client": ["../../src/index.ts"], "@turnd/client/ai": ["../../src/ai/index.ts"] };
    const config = { extends: "../../tsconfig.json", compilerOptions: { paths, jsx: "react-jsx" }, files, include: [] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    expect(spawnSync(tsc, ["-p", folder], { encoding: "utf8" })).toMatchObject({ stdout: "", status: 0 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
