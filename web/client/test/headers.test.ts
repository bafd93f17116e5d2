import { Code } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { createTurnd, RetryAdvice, TurndError, type TurndOptions } from "../src/index.js";
import { conversation } from "./events.js";

const bad: [string, Pick<TurndOptions, "token" | "headers">][] = [
  ["a token with a line break", { token: () => "secret\nb" }],
  ["a token that comes late, beyond Latin-1", { token: async () => "secret→" }],
  ["a header with a line break", { headers: { "x-turnd-subject": "secret\r\nx: y" } }],
  ["a header with a name that is none", { headers: () => ({ "x y": "secret" }) }],
];

test.each(bad)("%s fails at once, as the caller's error, and is not told", async (_, options) => {
  const fetch = vi.fn<typeof globalThis.fetch>();
  const onTrying = vi.fn();
  const turnd = createTurnd({ baseUrl: "http://turnd.test", storage: "memory", fetch, onTrying, ...options });
  const calls = [turnd.send({ conversationId: conversation, text: "hi" }).done, turnd.history({ conversationId: conversation })];
  for (const call of calls) {
    const error = await call.then(() => undefined, (thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TurndError);
    expect(error).toMatchObject({ code: Code.InvalidArgument, advice: RetryAdvice.DO_NOT_RETRY, gaveUp: false });
    for (let told: unknown = error; told instanceof Error; told = told.cause) expect(told.message).not.toContain("secret");
  }
  expect(onTrying).not.toHaveBeenCalled();
  expect(fetch).not.toHaveBeenCalled();
  expect(turnd.inFlight()).toHaveLength(1);
});
