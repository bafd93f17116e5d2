import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { type TurnInput, TurnInputSchema } from "./gen/turns/v1/turn_pb.js";

const recordVersion = 1;

/** What a client has to remember of a turn in flight, to send exactly it again. */
export interface TurnRecord {
  readonly turnId: string;
  readonly conversationId: string;
  /** The turn, as it was sent at first. */
  readonly input: TurnInput;
  /** Names the composed message that the turn is; empty if the caller gave none. */
  readonly draft: string;
  /** The cursor: how far events were dealt with. Empty if no reply was seen. */
  readonly replyId: string;
  readonly offset: number;
  /** When the turn was to be sent for the first time, in milliseconds since 1970. */
  readonly startTime: number;
}

/** The stored form of a record: JSON with the input in protobuf's wire format. */
export function encodeRecord(record: TurnRecord): string {
  const input = base64Encode(toBinary(TurnInputSchema, record.input));
  return JSON.stringify({ version: recordVersion, ...record, input });
}

/** Reads a stored record; undefined if it is corrupt or of another version. */
export function decodeRecord(stored: string): TurnRecord | undefined {
  try {
    const value: unknown = JSON.parse(stored);
    if (!isStored(value)) return undefined;
    const input = fromBinary(TurnInputSchema, base64Decode(value.input));
    if (input.turnId !== value.turnId || input.conversationId !== value.conversationId) return undefined;
    const { turnId, conversationId, draft, replyId, offset, startTime } = value;
    return { turnId, conversationId, input, draft, replyId, offset, startTime };
  } catch {
    return undefined;
  }
}

type Stored = Omit<TurnRecord, "input"> & { input: string };

function isStored(value: unknown): value is Stored {
  if (typeof value !== "object" || value === null) return false;
  const v = value as Record<string, unknown>;
  const texts = [v["turnId"], v["conversationId"], v["input"], v["draft"], v["replyId"]];
  const numbers = [v["offset"], v["startTime"]];
  return (
    v["version"] === recordVersion &&
    v["turnId"] !== "" &&
    texts.every((text) => typeof text === "string") &&
    numbers.every((number) => typeof number === "number" && Number.isFinite(number)) &&
    Number.isInteger(v["offset"]) &&
    (v["offset"] as number) >= 0
  );
}

/** Whether two turns say the same: all that the server compares, but for the turn's id. */
export function sameInput(a: TurnInput, b: TurnInput): boolean {
  return base64Encode(proper(a)) === base64Encode(proper(b));
}

function proper({ conversationId, parent, content, options }: TurnInput): Uint8Array {
  return toBinary(TurnInputSchema, create(TurnInputSchema, { conversationId, parent, content, ...(options && { options }) }));
}
