import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const source = (path: string) => fileURLToPath(new URL(`../../web/client/src/${path}`, import.meta.url));

export default defineConfig({
  plugins: [react()],
  build: { target: "es2022", chunkSizeWarningLimit: 1000 },
  // The page calls its own origin. Behind a real one, what passes calls on to turnd also says who calls.
  server: { host: "127.0.0.1", proxy: { "/turns.v1": process.env.TURND ?? "http://127.0.0.1:8080" } },
  // In this repository the client is read from its source. Outside of it leave this out, and install @turnd/client.
  resolve: { alias: { "@turnd/client/ai": source("ai/index.ts"), "@turnd/client": source("index.ts") } },
});
