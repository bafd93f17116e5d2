import { BinaryReader } from "@bufbuild/protobuf/wire";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import { fromBinary } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";

/** A field of the request that breaks its rule. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

/** A quota that is used up. */
export interface QuotaViolation {
  /** Whose quota it is: `tenant`, or `subject:` and a name. */
  readonly subject: string;
  readonly description: string;
}

/** What the details of a status say, as far as they are known here. */
export interface ErrorDetails {
  reason?: string;
  domain?: string;
  metadata: Record<string, string>;
  retryDelay: number;
  fieldViolations: FieldViolation[];
  quotaViolations: QuotaViolation[];
}

/** Reads the details of a status. Those of another kind, and those that can't be read, are passed over. */
export function readDetails(error: ConnectError): ErrorDetails {
  const details: ErrorDetails = { metadata: {}, retryDelay: 0, fieldViolations: [], quotaViolations: [] };
  for (const detail of error.details) {
    if (!("type" in detail)) continue;
    try {
      readers[detail.type]?.(detail.value, details);
    } catch {
      continue;
    }
  }
  return details;
}

type Reader = (value: Uint8Array, into: ErrorDetails) => void;

const readers: Partial<Record<string, Reader>> = {
  "google.rpc.ErrorInfo": (value, into) => {
    for (const [field, bytes] of fields(value)) {
      if (field === 1) into.reason = text(bytes);
      if (field === 2) into.domain = text(bytes);
      if (field === 3) {
        const [key, entry] = pair(bytes);
        into.metadata[key] = entry;
      }
    }
  },
  "google.rpc.RetryInfo": (value, into) => {
    for (const [field, bytes] of fields(value)) {
      if (field === 1) into.retryDelay = Math.max(0, milliseconds(fromBinary(DurationSchema, bytes)));
    }
  },
  "google.rpc.BadRequest": (value, into) => {
    for (const [at, bytes] of fields(value)) {
      const [field, description] = pair(bytes);
      if (at === 1) into.fieldViolations.push({ field, description });
    }
  },
  "google.rpc.QuotaFailure": (value, into) => {
    for (const [at, bytes] of fields(value)) {
      const [subject, description] = pair(bytes);
      if (at === 1) into.quotaViolations.push({ subject, description });
    }
  },
};

/** The milliseconds of a duration; 0 for none. */
export function milliseconds(duration: Duration | undefined): number {
  return duration === undefined ? 0 : Number(duration.seconds) * 1000 + duration.nanos / 1e6;
}

/** The length-delimited fields of a message; all fields of the messages that are read here are. */
function* fields(message: Uint8Array): Generator<[number, Uint8Array]> {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType === 2) yield [field, reader.bytes()];
    else reader.skip(wireType, field);
  }
}

function pair(message: Uint8Array): [string, string] {
  const out: [string, string] = ["", ""];
  for (const [field, bytes] of fields(message)) {
    if (field === 1 || field === 2) out[field - 1] = text(bytes);
  }
  return out;
}

const decoder = new TextDecoder();
const text = (bytes: Uint8Array) => decoder.decode(bytes);
