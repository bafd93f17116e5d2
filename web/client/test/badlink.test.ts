import { isMessage, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { expect, inject, test } from "vitest";
import { type TurnRequest, TurnRequestSchema } from "../src/index.js";
import { newTurnId } from "../src/turn_id.js";
import { Control } from "./scenario.js";

const control = new Control(inject("badlink"));
const scenarios = await control.scenarios();

test.concurrent.each(scenarios.map((scenario) => [scenario.name, scenario] as const))("%s", async (_, scenario) => {
  expect(await control.play(scenario)).toEqual([]);
});

/** Stands between a client and its server, and changes what is sent and how it fails. */
const breaking = (send: (request: TurnRequest) => void, fail = (error: ConnectError) => error): Interceptor =>
  (next) => async (request) => {
    if (!request.stream) return next(request);
    const response = await next({ ...request, message: each(request.message, send) });
    return response.stream ? { ...response, message: failing(response.message, fail) } : response;
  };

async function* each<M extends Message>(messages: AsyncIterable<M>, change: (request: TurnRequest) => void): AsyncGenerator<M> {
  for await (const message of messages) {
    if (isMessage(message, TurnRequestSchema)) change(message);
    yield message;
  }
}

async function* failing<M>(messages: AsyncIterable<M>, fail: (error: ConnectError) => ConnectError): AsyncGenerator<M> {
  try {
    yield* messages;
  } catch (thrown) {
    throw fail(ConnectError.from(thrown));
  }
}

const nothing = () => {};

test.concurrent.each([
  ["forgets its cursor", breaking((request) => delete request.cursor), "the stream ends in good order before the reply does"],
  ["takes another id for each delivery", breaking(({ input }) => input && (input.turnId = newTurnId())), "the first answers are lost"],
  ["sees a cursor ahead", breaking(({ cursor }) => cursor && (cursor.offset += 1)), "a slow reader is cut off again and again"],
  ["comes back before its time", breaking(nothing, ({ code }) => new ConnectError("lost", code)), "the database is away"],
  ["takes a refusal for a lost link", breaking(nothing, () => new ConnectError("lost", Code.Unavailable)), "the id was used for something else"],
])("a client that %s is found out", async (_, broken, name) => {
  const scenario = scenarios.find((scenario) => scenario.name === name);
  if (scenario === undefined) throw new Error(`there is no scenario ${name}`);
  expect(await control.play(scenario, broken)).not.toEqual([]);
});
