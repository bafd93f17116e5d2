import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { poll } from "../src/app/polling";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("asks again in time, and for what is lost, but neither for what is on its way nor for a page that nobody looks at", () => {
  const page = { visibilityState: "visible" };
  vi.stubGlobal("document", page);
  let busy = false;
  const ask = vi.fn();
  const end = poll(1000, () => busy, ask);
  vi.advanceTimersByTime(2000);
  expect(ask).toHaveBeenCalledTimes(2);
  busy = true;
  vi.advanceTimersByTime(5000);
  expect(ask).toHaveBeenCalledTimes(2);
  vi.advanceTimersByTime(40_000);
  expect(ask).toHaveBeenCalledTimes(3);
  busy = false;
  page.visibilityState = "hidden";
  vi.advanceTimersByTime(5000);
  expect(ask).toHaveBeenCalledTimes(3);
  page.visibilityState = "visible";
  vi.advanceTimersByTime(1000);
  expect(ask).toHaveBeenCalledTimes(4);
  end();
  vi.advanceTimersByTime(5000);
  expect(ask).toHaveBeenCalledTimes(4);
});
