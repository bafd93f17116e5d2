import { AbandonReason, CallClass, ReplyStatus, RetryAdvice, StopReason } from "../api/wire";

export const abandoned: Readonly<Record<AbandonReason, string>> = {
  [AbandonReason.UNSPECIFIED]: "Given up",
  [AbandonReason.LEASE_EXPIRED]: "Its worker went away",
  [AbandonReason.PROVIDER_ERROR]: "The provider failed",
  [AbandonReason.PROVIDER_REFUSED]: "The provider turned the request down",
  [AbandonReason.AMBIGUOUS]: "Nobody knows what came of the request",
  [AbandonReason.EMPTY]: "The model wrote nothing",
  [AbandonReason.CANCELLED]: "Stopped",
  [AbandonReason.DISCONNECTED]: "Stopped, since nobody was following",
  [AbandonReason.DEADLINE]: "It ran out of time",
  [AbandonReason.SHUTDOWN]: "Its worker was shut down",
  [AbandonReason.SUPERSEDED]: "Another reply is used instead",
  [AbandonReason.DELETED]: "Deleted",
  [AbandonReason.HELD_RELEASED]: "Held, then let go by an operator",
};

export const advice: Readonly<Record<RetryAdvice, string>> = {
  [RetryAdvice.UNSPECIFIED]: "",
  [RetryAdvice.SAME_ID_NOW]: "Sending the turn again makes another attempt.",
  [RetryAdvice.SAME_ID_AFTER_WAIT]: "Wait a little, then send the turn again.",
  [RetryAdvice.NEW_ID]: "Say it as a new turn.",
  [RetryAdvice.REGENERATE]: "Regenerate for another attempt.",
  [RetryAdvice.DO_NOT_RETRY]: "Trying again would fail the same way.",
};

export const stopped: Readonly<Record<StopReason, string>> = {
  [StopReason.UNSPECIFIED]: "",
  [StopReason.END_TURN]: "",
  [StopReason.TOOL_USE]: "Waits for tool results",
  [StopReason.LENGTH]: "Cut at its greatest length",
  [StopReason.STOP_SEQUENCE]: "Ended by a stop sequence",
  [StopReason.REFUSAL]: "The model declined",
  [StopReason.CONTENT_FILTER]: "Stopped by the provider's filter",
  [StopReason.CONTEXT_EXCEEDED]: "The context window is used up",
  [StopReason.PAUSE]: "The provider paused it, to be continued",
};

export const status: Readonly<Record<ReplyStatus, string>> = {
  [ReplyStatus.UNSPECIFIED]: "unknown",
  [ReplyStatus.IN_FLIGHT]: "running",
  [ReplyStatus.COMPLETE]: "complete",
  [ReplyStatus.HELD]: "held",
  [ReplyStatus.ABANDONED]: "abandoned",
};

export const classes: Readonly<Record<CallClass, string>> = {
  [CallClass.UNSPECIFIED]: "running",
  [CallClass.OK]: "ok",
  [CallClass.NOT_SENT]: "not sent",
  [CallClass.TRANSIENT]: "transient",
  [CallClass.THROTTLED]: "throttled",
  [CallClass.IN_FLIGHT_ELSEWHERE]: "in flight elsewhere",
  [CallClass.ALREADY_DONE]: "already done",
  [CallClass.AMBIGUOUS]: "ambiguous",
  [CallClass.TERMINAL]: "terminal",
  [CallClass.CANCELLED]: "cancelled",
};
