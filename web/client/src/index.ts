/**
 * The client of turnd for browsers: it sends user turns and reads their replies over links that fail.
 *
 * @packageDocumentation
 */
export { type Clock, systemClock } from "./clock.js";
export type { FieldViolation, QuotaViolation } from "./error_details.js";
export { adviceFor, sameId, TurndError, type TurndErrorInit } from "./errors.js";
export type { LinkState } from "./follower.js";
export type {
  BlockInit, FollowRequest, HistoryRequest, Listening, RegenerateRequest, ResumeOptions, SendRequest, SteerRequest, Target, TurndOptions,
} from "./options.js";
export type { TurnRecord } from "./record.js";
export { Reply } from "./reply.js";
export { type EndEvent, type ReplyBlock, ReplyLog } from "./reply_log.js";
export type { RetryPolicy, RetrySettings } from "./settings.js";
export type { DroppedRecord } from "./slots.js";
export type { ReplyEnd, ReplySnapshot, ReplyState } from "./snapshot.js";
export type { RecordStorage, StorageTrouble } from "./storage.js";
export { browserSurroundings, type Surroundings } from "./surroundings.js";
export { asUuid, newTurnId, turnIdFor, UPSTREAM_NAMESPACE } from "./turn_id.js";
export { textBlock } from "./turn_input.js";
export { createTurnd, Turnd } from "./turnd.js";

export * from "./gen/turns/v1/content_pb.js";
export * from "./gen/turns/v1/conversation_service_pb.js";
export * from "./gen/turns/v1/error_pb.js";
export * from "./gen/turns/v1/event_pb.js";
export * from "./gen/turns/v1/operator_service_pb.js";
export { type Reply as StoredReply, ReplySchema as StoredReplySchema } from "./gen/turns/v1/turn_pb.js";
export {
  AbandonReason, DeliverySource, OnAmbiguous, OnBusy, OnDisconnect, OnPartial, ReplyStatus, RetryAdvice, StopReason,
  TokenSource, type TurnInput, TurnInputSchema, type Usage, UsageSchema, type UserTurn, UserTurnSchema,
} from "./gen/turns/v1/turn_pb.js";
export * from "./gen/turns/v1/turn_service_pb.js";
