import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    license: { fileName: "licenses.md" },
  },
  server: {
    proxy: {
      "/turns.v1": { target: process.env.TURND ?? "http://127.0.0.1:8080" },
      "/v1": { target: process.env.TURND ?? "http://127.0.0.1:8080" },
    },
  },
});
