import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { Clock } from "./clock.js";
import type { TurndError } from "./errors.js";
import type { BlockSchema, GenerationOptionsSchema } from "./gen/turns/v1/content_pb.js";
import type { Event } from "./gen/turns/v1/event_pb.js";
import type { OnAmbiguous, OnBusy, OnDisconnect, OnPartial } from "./gen/turns/v1/turn_pb.js";
import type { RetrySettings } from "./settings.js";
import type { DroppedRecord } from "./slots.js";
import type { RecordStorage, StorageTrouble } from "./storage.js";
import type { Surroundings } from "./surroundings.js";

/** The options of {@link createTurnd}. */
export interface TurndOptions extends Partial<RetrySettings> {
  /** Where turnd is: `/` for the page's own origin, or such as `https://turnd.example.com`. */
  readonly baseUrl?: string;
  /** A transport of Connect to use in place of one made from `baseUrl`, `token`, `headers` and `fetch`. */
  readonly transport?: Transport;
  /**
   * Gives the bearer token of each request: an API key of the page's user, or an OIDC token. It may be asked for anew. One that
   * can't be sent in a header fails the call at once, and so do `headers`.
   */
  readonly token?: () => string | undefined | Promise<string | undefined>;
  /** Headers of each request. */
  readonly headers?: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>);
  readonly fetch?: typeof globalThis.fetch;
  /**
   * Where the turns in flight are remembered; `localStorage` by default, where there is one, so that a reload and other tabs
   * find them. `sessionStorage` keeps them to one tab, `memory` to one page.
   */
  readonly storage?: RecordStorage | "memory";
  /** What keys of the storage begin with; `turnd:` by default. Give each user of a shared browser another. */
  readonly storagePrefix?: string;
  /** How long a turn in flight is remembered, in milliseconds; an hour by default. Who comes back later has given up on it. */
  readonly maxRecordAge?: number;
  /** The least time between two writes of a cursor, in milliseconds; 1,000 by default. */
  readonly recordEvery?: number;
  /** Is told when the storage can't be used; turns are sent all the same. */
  readonly onStorageTrouble?: (trouble: StorageTrouble) => void;
  /** Is told when a record was corrupt or too old. */
  readonly onRecordDropped?: (dropped: DroppedRecord) => void;
  /** Is told of each failure that is followed by a wait, in milliseconds, and another try. */
  readonly onTrying?: (cause: TurndError, wait: number) => void;
  readonly clock?: Clock;
  readonly surroundings?: Surroundings;
}

/** A piece of content. */
export type BlockInit = MessageInitShape<typeof BlockSchema>;

/** What concerns one Reply on this page, and not the turn. */
export interface Listening {
  /** Stops listening once it aborts, and nothing else. Give the signal of the page or component here. */
  readonly signal?: AbortSignal;
  /** Gets each new event as it comes, deltas cut to what is new; heartbeats and repeats are kept back. */
  readonly onEvent?: (event: Event) => void;
}

/** A turn to send. */
export interface SendRequest extends Listening {
  /** A UUID; one is minted for a new conversation if it is left out. The first turn that names it makes it. */
  readonly conversationId?: string;
  /** What the user says, in words. */
  readonly text?: string;
  /** What the user says, in blocks, after `text` if both are given. */
  readonly content?: readonly BlockInit[];
  /** A UUID, minted if left out. Derive one by {@link turnIdFor} from an id of another form. */
  readonly turnId?: string;
  /**
   * Names the composed message. While the turn of a draft is in flight, sending the draft again is that same turn. Without a
   * name two sends of the same content in one conversation count as one draft, so that a double tap is one turn.
   */
  readonly draft?: string;
  /** The reply or turn that this one hangs below, or `root`; the conversation's current leaf if left out. */
  readonly parent?: string | "root";
  readonly options?: MessageInitShape<typeof GenerationOptionsSchema>;
  readonly onBusy?: OnBusy;
  readonly onDisconnect?: OnDisconnect;
  readonly onAmbiguous?: OnAmbiguous;
  readonly onPartial?: OnPartial;
  readonly overrideNoProgress?: boolean;
}

/** Names a reply: by its own id if there is one, else as the latest to a turn. */
export type Target =
  | { readonly replyId: string; readonly turnId?: string | undefined }
  | { readonly turnId: string; readonly replyId?: undefined };

/** A reply to follow. */
export type FollowRequest = Target & Listening & {
  readonly conversationId: string;
  /** At which offset of its log to begin, for a caller that shows the rest; 0 if left out. */
  readonly offset?: number;
};

/** A reply to act on. */
export type SteerRequest = Target & { readonly conversationId: string; readonly signal?: AbortSignal };

/** A reply to make another one in place of. */
export interface RegenerateRequest {
  readonly conversationId: string;
  /** The live reply of its turn or, where none is live, the latest. */
  readonly replyId: string;
  /**
   * The turn's generation as the user has seen it last, such as that of a snapshot; the reply's own if left out. It is what
   * makes a double click one regenerate.
   */
  readonly generation?: number;
  /** Options that differ from those of the turn. */
  readonly options?: MessageInitShape<typeof GenerationOptionsSchema>;
  readonly signal?: AbortSignal;
}

/** Which turns to list. */
export interface HistoryRequest {
  readonly conversationId: string;
  /** The reply or turn to list the way to; the conversation's current leaf if left out. */
  readonly leafId?: string;
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

/** How to go on with a turn in flight. */
export interface ResumeOptions extends Listening {
  /**
   * `start`, the default, reads the reply from its beginning, for a page that shows nothing yet; `cursor` goes on after what
   * was last shown, for one that still shows the rest.
   */
  readonly from?: "start" | "cursor";
}
