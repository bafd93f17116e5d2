import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/**/*.test.ts"], globalSetup: ["test/badlink_setup.ts"], testTimeout: 30_000, hookTimeout: 180_000 },
});
