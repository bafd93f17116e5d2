package server

import (
	"slices"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// enum pairs an enum of the wire with a type of the domain: the value at index i is the wire's number i. Index 0 is the
// wire's "unspecified" and the domain's empty value.
type enum[W ~int32, D ~string] []D

// domain is the domain's value of a number on the wire; ok is false for a number that this server does not know.
func (e enum[W, D]) domain(w W) (d D, ok bool) {
	if w < 0 || int(w) >= len(e) {
		return "", false
	}
	return e[w], true
}

// wire is the number of a value of the domain, "unspecified" for one that the wire lacks.
func (e enum[W, D]) wire(d D) W { return W(max(slices.Index(e, d), 0)) }

// The tables. A test holds each against the generated enum.
var (
	statuses       = enum[turnsv1.ReplyStatus, turns.Status]{"", turns.StatusInFlight, turns.StatusComplete, turns.StatusHeld, turns.StatusAbandoned}
	abandonReasons = enum[turnsv1.AbandonReason, turns.Reason]{
		"", turns.ReasonLeaseExpired, turns.ReasonProviderError, turns.ReasonProviderRefused, turns.ReasonAmbiguous, turns.ReasonEmpty,
		turns.ReasonCancelled, turns.ReasonDisconnected, turns.ReasonDeadline, turns.ReasonShutdown, turns.ReasonSuperseded,
		turns.ReasonDeleted, turns.ReasonHeldReleased,
	}
	stopReasons = enum[turnsv1.StopReason, turns.StopReason]{
		"", turns.StopEndTurn, turns.StopToolUse, turns.StopLength, turns.StopSequence, turns.StopRefusal, turns.StopContentFilter,
		turns.StopContextExceeded, turns.StopPause,
	}
	tokenSources = enum[turnsv1.TokenSource, turns.TokenSource]{"", turns.SourceReported, turns.SourceEstimated}
	advices      = enum[turnsv1.RetryAdvice, turns.Advice]{
		turns.AdviceNone, turns.AdviceSameIDNow, turns.AdviceSameIDAfter, turns.AdviceNewID, turns.AdviceRegenerate, turns.AdviceDoNotRetry,
	}
	onBusies        = enum[turnsv1.OnBusy, turns.OnBusy]{"", turns.OnBusyReject, turns.OnBusyEnqueue, turns.OnBusyInterrupt, turns.OnBusySupersede}
	onDisconnects   = enum[turnsv1.OnDisconnect, turns.OnDisconnect]{"", turns.OnDisconnectContinue, turns.OnDisconnectCancel}
	onAmbiguouses   = enum[turnsv1.OnAmbiguous, turns.OnAmbiguous]{"", turns.OnAmbiguousAbandon, turns.OnAmbiguousRetry, turns.OnAmbiguousHold}
	onPartials      = enum[turnsv1.OnPartial, turns.OnPartial]{"", turns.OnPartialDiscard, turns.OnPartialContinue}
	deliverySources = enum[turnsv1.DeliverySource, turns.DeliverySource]{"", turns.SourceClientRetry, turns.SourceRedelivery}
	blockKinds      = enum[turnsv1.BlockKind, turns.BlockKind]{"", turns.KindText, turns.KindThinking, turns.KindToolUse, turns.KindRefusal, turns.KindOpaque}
	toolChoiceModes = enum[turnsv1.ToolChoiceMode, turns.ToolChoiceMode]{"", "none", "any", "tool"}
	callClasses     = enum[turnsv1.CallClass, turns.CallClass]{
		"", turns.ClassOK, turns.ClassNotSent, turns.ClassTransient, turns.ClassThrottled, turns.ClassInFlightElsewhere,
		turns.ClassAlreadyDone, turns.ClassAmbiguous, turns.ClassTerminal, turns.ClassCancelled,
	}
	callTries    = enum[turnsv1.CallTry, turns.CallTry]{"", turns.TryFirst, turns.TryRetry}
	takeoverWays = enum[turnsv1.TakeoverWay, turns.TakeoverWay]{
		"", turns.TakenFree, turns.TakenAgain, turns.TakenAsked, turns.TakenReplaced, turns.TakenBack,
	}
	deliveryResults = enum[turnsv1.DeliveryResult, turns.DeliveryResult]{
		"", turns.ResultNew, turns.ResultAttached, turns.ResultReplayed, turns.ResultRetried, turns.ResultQueued,
	}
)
