import type { UIMessage } from "ai";
import type { ReplyEnd } from "../snapshot.js";

/** What messages know of turnd. */
export interface TurndMetadata {
  readonly turnd?: TurnOfMessage;
}

/** The turn, and of a message of the assistant's the reply, that a message shows. */
export interface TurnOfMessage {
  readonly turnId: string;
  /** The reply that is shown, or of a user message the live one. */
  readonly replyId?: string;
  /** The turn's generation as it is shown; a regenerate is compared with it. */
  readonly generation?: number;
  readonly attempt?: number;
  readonly provider?: string;
  readonly model?: string;
  /** How the reply ended, if it has. */
  readonly end?: ReplyEnd["kind"];
  /** The number of replies to the turn, itself among them, as of the time it was loaded. */
  readonly replyCount?: number;
  /** The turns that share the parent of a user message's turn, itself among them, the earliest first. */
  readonly siblingTurnIds?: readonly string[];
  /** The turn or reply above a user message's turn; empty for a root. */
  readonly parentId?: string;
}

/** The data parts of a message of the assistant's. */
export type TurndDataParts = {
  /** Which reply is shown. Its id is that of the turn, so that there is one a turn. */
  "turnd-reply": { turnId: string; replyId: string; generation: number; attempt: number; provider: string; model: string };
  /** The reply's outcome is unknown and an operator has to find out; asking again after a time, in milliseconds, may tell. */
  "turnd-held": { replyId: string; retryDelay: number; age: number };
  /** Another reply took the place of one that was shown. */
  "turnd-restarted": { previousReplyId: string; replyId: string };
  /** The turn waits in line. It comes by `onData` only and is no part of the message. */
  "turnd-queued": { position: number };
};

/** A message with what turnd adds. */
export type TurndUIMessage = UIMessage<TurndMetadata, TurndDataParts>;
