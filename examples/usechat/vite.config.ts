import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const { TURND = "http://127.0.0.1:8080", TURND_TOKEN } = process.env;
const source = (path: string) => fileURLToPath(new URL(`../../web/client/src/${path}`, import.meta.url));

export default defineConfig({
  plugins: [react()],
  build: { target: "es2022", chunkSizeWarningLimit: 1000 },
  // The page calls its own origin, and what passes calls on to turnd says who calls. Here that is one key for all.
  server: {
    host: "127.0.0.1",
    proxy: {
      "/turns.v1": { target: TURND, changeOrigin: true, headers: TURND_TOKEN ? { Authorization: `Bearer ${TURND_TOKEN}` } : {} },
    },
  },
  // In this repository the client is read from its source. Outside of it leave this out, and install @turnd/client.
  resolve: { alias: { "@turnd/client/ai": source("ai/index.ts"), "@turnd/client": source("index.ts") } },
});
