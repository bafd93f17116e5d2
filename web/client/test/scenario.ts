import type { Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import {
  BlockKind, createTurnd, ErrorReason, type Reply, type ReplySnapshot, RetryAdvice, type Turnd, TurndError,
} from "../src/index.js";
import { MemoryStorage } from "./memory_storage.js";

/** A scenario as the file has it; what its fields mean is said beside it. */
export interface Scenario {
  readonly name: string;
  readonly client: {
    readonly do: "send" | "follow" | "twice" | "resume" | "again";
    readonly from?: "start" | "cursor";
    readonly leave_at?: number;
    readonly offset?: number;
    readonly auto?: boolean;
    readonly max_reconnects?: number;
    readonly max_silence_ms?: number;
    readonly max_wait_ms?: number;
  };
  readonly expect: {
    readonly end: string;
    readonly text: string;
    readonly reply?: string;
    readonly calls: number;
    readonly cursors?: readonly (readonly [string, number] | null | "any")[];
    readonly gaps_ms?: readonly number[];
    readonly restarts?: number;
    readonly blocks?: readonly string[];
    readonly reason?: string;
    readonly advice?: string;
    readonly gave_up?: boolean;
    readonly recorded?: boolean;
  };
}

interface Reported {
  readonly turn_id: string;
  readonly reply_id: string;
  readonly offset: number;
  readonly at_ms: number;
}

const conversationId = "0190b6a0-0000-7000-8000-00000000c000";

const replyNamed = (letter: string | undefined) =>
  letter === undefined || letter === "" ? "" : `0190b6a0-0000-7000-8000-0000000000${letter.charCodeAt(0).toString(16)}`;

/** The control of what plays bad links. */
export class Control {
  constructor(private readonly base: string) {}

  async scenarios(): Promise<Scenario[]> {
    return this.ask<Scenario[]>("GET", "/scenarios");
  }

  /** Plays a scenario and lists what is not as it says. `broken` stands between the client and the server. */
  async play(scenario: Scenario, broken?: Interceptor): Promise<string[]> {
    const { addr } = await this.ask<{ addr: string }>("POST", `/stages?name=${encodeURIComponent(scenario.name)}`);
    try {
      const storage = new MemoryStorage();
      const player = new Player(scenario, addr, storage, () => void this.ask("POST", `/up?addr=${addr}`), broken);
      const faults = faultsOfEnd(scenario, await player.run());
      const recorded = storage.length > 0;
      if (recorded !== (scenario.expect.recorded ?? false)) faults.push(`recorded: ${recorded}`);
      return [...faults, ...faultsOfCalls(scenario, await this.ask<Reported[]>("GET", `/report?addr=${addr}`))];
    } finally {
      await this.ask("POST", `/close?addr=${addr}`);
    }
  }

  private async ask<T>(method: string, path: string): Promise<T> {
    const response = await fetch(this.base + path, { method });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as T;
  }
}

type Outcome = { readonly last: ReplySnapshot; readonly error?: TurndError };

class Player {
  constructor(
    private readonly scenario: Scenario,
    private readonly addr: string,
    private readonly storage: MemoryStorage,
    private readonly up: () => void,
    private readonly broken: Interceptor | undefined,
  ) {}

  async run(): Promise<Outcome> {
    const { client } = this.scenario;
    const turnd = this.turnd();
    switch (client.do) {
      case "send":
        return this.read(this.send(turnd));
      case "follow":
        return this.read(turnd.follow({ conversationId, replyId: replyNamed("A"), offset: client.offset ?? 0 }));
      case "twice": {
        const replies = [this.send(turnd), this.send(this.turnd())];
        const [first, second] = await Promise.all(replies.map((reply) => this.read(reply)));
        if (first === undefined || first.last.text !== second?.last.text) throw new Error("two tabs show different texts");
        return first;
      }
      case "again": {
        const reply = this.send(turnd);
        await this.read(reply);
        return this.read(reply.again());
      }
      case "resume": {
        for await (const { cursor } of this.send(turnd)) if ((cursor?.offset ?? 0) >= (client.leave_at ?? 0)) break;
        const reply = await this.turnd().resume(conversationId, { from: client.from ?? "start" });
        if (reply === undefined) throw new Error("nothing is in flight");
        return this.read(reply);
      }
    }
  }

  private turnd(): Turnd {
    const { max_reconnects, max_silence_ms, max_wait_ms, auto } = this.scenario.client;
    return createTurnd({
      transport: createConnectTransport({
        baseUrl: `http://${this.addr}`, useBinaryFormat: true, ...(this.broken && { interceptors: [this.broken] }),
      }),
      storage: this.storage,
      backoff: 20,
      maxBackoff: 200,
      onTrying: this.up,
      retry: auto === true ? "auto" : "ask",
      ...(max_reconnects !== undefined && { maxReconnects: max_reconnects }),
      ...(max_silence_ms !== undefined && { maxSilence: max_silence_ms }),
      ...(max_wait_ms !== undefined && { maxWait: max_wait_ms }),
    });
  }

  private readonly send = (turnd: Turnd): Reply => turnd.send({ conversationId, text: "hi" });

  private async read(reply: Reply): Promise<Outcome> {
    try {
      for await (const _ of reply) void _;
      return { last: await reply.done };
    } catch (thrown) {
      if (thrown instanceof TurndError) return { last: reply.snapshot, error: thrown };
      throw thrown;
    }
  }
}

function faultsOfEnd({ expect }: Scenario, { last, error }: Outcome): string[] {
  const end = last.end;
  const advice = error?.advice ?? (end !== undefined && end.kind !== "completed" ? end.advice : RetryAdvice.UNSPECIFIED);
  const got = {
    end: error === undefined ? end?.kind : "error",
    text: last.text,
    reply: last.replyId,
    restarts: last.restarts,
    gaveUp: error?.gaveUp ?? false,
    ...(expect.blocks && { blocks: last.blocks.map(({ kind }) => BlockKind[kind].toLowerCase()).join() }),
    ...(expect.reason && { reason: ErrorReason[error?.reason ?? 0] }),
    ...(expect.advice && { advice: RetryAdvice[advice] }),
  };
  const want = {
    end: expect.end,
    text: expect.text,
    reply: replyNamed(expect.reply),
    restarts: expect.restarts ?? 0,
    gaveUp: expect.gave_up ?? false,
    ...(expect.blocks && { blocks: expect.blocks.join() }),
    ...(expect.reason && { reason: expect.reason }),
    ...(expect.advice && { advice: expect.advice }),
  };
  return JSON.stringify(got) === JSON.stringify(want) ? [] : [`${JSON.stringify(got)}, want ${JSON.stringify(want)}`];
}

function faultsOfCalls({ expect }: Scenario, calls: readonly Reported[]): string[] {
  const faults: string[] = [];
  if (calls.length !== expect.calls) faults.push(`calls: ${calls.length}, want ${expect.calls}`);
  if (new Set(calls.map(({ turn_id }) => turn_id)).size > 1) faults.push("the calls have more than one turn id");
  for (const [i, call] of calls.entries()) {
    const want = expect.cursors?.[i];
    const [letter, offset] = want === null || want === undefined || want === "any" ? ["", 0] : want;
    if (want !== undefined && want !== "any" && (call.reply_id !== replyNamed(letter) || call.offset !== offset)) {
      faults.push(`cursor ${i}: ${call.reply_id} ${call.offset}, want ${JSON.stringify(want)}`);
    }
    const gap = expect.gaps_ms?.[i - 1] ?? 0;
    const before = calls[i - 1]?.at_ms ?? -Infinity;
    if (call.at_ms - before < gap) faults.push(`call ${i} came after ${call.at_ms - before} ms, want ${gap}`);
  }
  return faults;
}
