package scripted

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Bounds of a script. They keep one plan within memory that a test machine has.
const (
	maxRules      = 10_000
	maxSteps      = 1_000
	maxDeltas     = 1_000_000
	maxDeltaBytes = 64 << 10
	maxReplyBytes = 64 << 20
	maxPaceMS     = 600_000
)

// Validate returns a *FieldError for the first field that cannot be used, or nil.
func (s Script) Validate() error {
	if err := oneOf("endpoint.idempotency", s.Endpoint.Idempotency, IdempotencyNone, IdempotencyEnforce); err != nil {
		return err
	}
	if err := within("endpoint.retention_s", s.Endpoint.RetentionS, 0, 10*365*86_400); err != nil {
		return err
	}
	if err := within("endpoint.lookup_delay_ms", s.Endpoint.LookupDelayMS, 0, maxPaceMS); err != nil {
		return err
	}
	if err := within("endpoint.kept_s", s.Endpoint.KeptS, 0, 10*365*86_400); err != nil {
		return err
	}
	if len(s.Rules) > maxRules {
		return &FieldError{"rules", fmt.Sprintf("more than %d", maxRules)}
	}
	for i, rule := range s.Rules {
		if err := rule.validate(fmt.Sprintf("rules[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (r Rule) validate(path string) error {
	if err := within(path+".times", r.Times, 0, maxDeltas); err != nil {
		return err
	}
	if err := r.Match.validate(path + ".match"); err != nil {
		return err
	}
	if r.Match.Ask != "" {
		return r.validateAsk(path)
	}
	if err := r.Plan.validate(path + ".plan"); err != nil {
		return err
	}
	return r.validateAccept(path)
}

// validateAccept holds accept steps to what can be known before a request is read.
func (r Rule) validateAccept(path string) error {
	if !r.Plan.hasAccept() {
		return nil
	}
	if (r.Match != Match{Nth: r.Match.Nth}) {
		return &FieldError{path + ".match", "a rule with accept steps can match on nth alone: no request is read yet"}
	}
	for i, step := range r.Plan.Steps {
		if step.At != AtAccept {
			return &FieldError{fmt.Sprintf("%s.plan.steps[%d].at", path, i), "accept steps need a rule of their own"}
		}
	}
	return nil
}

func (m Match) validate(path string) error {
	if err := oneOf(path+".wire", m.Wire, wireAnthropic, wireOpenAI, wireResponses, wireGemini, wireInteractions); err != nil {
		return err
	}
	if err := oneOf(path+".ask", m.Ask, AskRetrieve, AskResume, AskCancel, AskList, AskSession, AskDelete); err != nil {
		return err
	}
	if _, err := regexp.Compile(m.Text); err != nil {
		return &FieldError{path + ".text", err.Error()}
	}
	if _, err := regexp.Compile(m.Key); err != nil {
		return &FieldError{path + ".key", err.Error()}
	}
	return within(path+".nth", m.Nth, 0, 1<<30)
}

func (p Plan) validate(path string) error {
	if err := p.validateContent(path); err != nil {
		return err
	}
	if err := oneOf(path+".usage", p.Usage, UsageFull, UsageStartOnly, UsageNone, UsageZero); err != nil {
		return err
	}
	if err := oneOf(path+".write", p.Write, WriteEvent, WriteByte, WriteOnce); err != nil {
		return err
	}
	if err := oneOf(path+".line_end", p.LineEnd, LineEndLF, LineEndCRLF, LineEndCR); err != nil {
		return err
	}
	if err := oneOf(path+".on_client_gone", p.OnClientGone, ClientGoneFinish, ClientGoneStop); err != nil {
		return err
	}
	if err := within(path+".pace_ms", p.PaceMS, 0, maxPaceMS); err != nil {
		return err
	}
	return p.validateSteps(path)
}

// validateContent bounds the reply, or each block.
func (p Plan) validateContent(path string) error {
	if p.Reply != nil && len(p.Blocks) > 0 {
		return &FieldError{path + ".blocks", "excluded by reply"}
	}
	for i, block := range p.Blocks {
		if err := block.validate(fmt.Sprintf("%s.blocks[%d]", path, i)); err != nil {
			return err
		}
	}
	if p.Reply == nil {
		return nil
	}
	return p.Reply.validate(path + ".reply")
}

func (r Reply) validate(path string) error {
	if err := within(path+".deltas", r.Deltas, 0, maxDeltas); err != nil {
		return err
	}
	if err := within(path+".delta_bytes", r.DeltaBytes, 0, maxDeltaBytes); err != nil {
		return err
	}
	if r.Deltas*r.deltaBytes() > maxReplyBytes {
		return &FieldError{path, fmt.Sprintf("more than %d bytes", maxReplyBytes)}
	}
	return nil
}

func (b Block) validate(path string) error {
	kinds := 0
	for _, is := range []bool{b.Text != "", b.Thinking != "", b.Redacted != "", b.Refusal != "", b.ToolUse != nil, b.Vendor != ""} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return &FieldError{path, "needs exactly one of text, thinking, redacted, refusal, tool_use and vendor"}
	case b.Signature != "" && b.Thinking == "" && b.Text == "":
		return &FieldError{path + ".signature", "belongs to thinking or text"}
	case len(b.Cites) > 0 && b.Text == "":
		return &FieldError{path + ".cites", "belongs to text"}
	case b.Phase != "" && b.Text == "" && b.Refusal == "":
		return &FieldError{path + ".phase", "belongs to text or refusal"}
	case b.Vendor != "" && !json.Valid([]byte(b.Vendor)):
		return &FieldError{path + ".vendor", "must be JSON"}
	case b.ToolUse != nil && (b.ToolUse.ID == "" || b.ToolUse.Name == ""):
		return &FieldError{path + ".tool_use", "needs id and name"}
	}
	for i, cite := range b.Cites {
		if !json.Valid([]byte(cite)) {
			return &FieldError{fmt.Sprintf("%s.cites[%d]", path, i), "must be JSON"}
		}
	}
	return nil
}

func (p Plan) validateSteps(path string) error { return p.validateStepsWithin(path, p.deltas()) }

func (p Plan) validateStepsWithin(path string, deltas int) error {
	if len(p.Steps) > maxSteps {
		return &FieldError{path + ".steps", fmt.Sprintf("more than %d", maxSteps)}
	}
	for i, step := range p.Steps {
		if err := step.validate(fmt.Sprintf("%s.steps[%d]", path, i), deltas); err != nil {
			return err
		}
	}
	return nil
}

// actionsAt says what can be done at each point. All delta points and before_terminal are as after_headers.
var actionsAt = map[Point][]Action{
	AtAccept:        {DoReset, DoClose, DoSilence, DoWait},
	AtRequestRead:   {DoStatus, DoReset, DoClose, DoSilence, DoWait, DoGarbage},
	AtBeforeHeaders: {DoStatus, DoReset, DoClose, DoSilence, DoWait, DoGarbage},
	AtAfterHeaders:  {DoReset, DoClose, DoSilence, DoWait, DoErrorEvent, DoGarbage, DoEndless, DoComment},
	AtAfterTerminal: {DoReset, DoClose, DoSilence, DoWait, DoGarbage, DoEndless, DoComment, DoRepeatTerminal, DoKeepOpen},
}

// validate refuses, among others, a step at a delta that never comes: a fault that is never played proves nothing.
func (s Step) validate(path string, deltas int) error {
	n, isDelta := s.At.delta()
	point := s.At
	if isDelta || point == AtBeforeTerminal {
		point = AtAfterHeaders
	}
	allowed, known := actionsAt[point]
	switch {
	case !known:
		return &FieldError{path + ".at", fmt.Sprintf("%q is not a point of a call", s.At)}
	case isDelta && n > deltas:
		return &FieldError{path + ".at", fmt.Sprintf("the reply has only %d deltas", deltas)}
	case !slices.Contains(allowed, s.Do):
		return &FieldError{path + ".do", fmt.Sprintf("%q cannot be done at %s, only one of %v", s.Do, s.At, allowed)}
	case (s.Do == DoWait) != (s.Gate != ""):
		return &FieldError{path + ".gate", "a wait names its gate, other steps have none"}
	}
	return s.validateAnswer(path)
}

// validateAnswer refuses fields that would have no effect.
func (s Step) validateAnswer(path string) error {
	switch {
	case s.Do == DoStatus && (s.Status < 200 || s.Status > 599):
		return &FieldError{path + ".status", "must be between 200 and 599"}
	case s.Do != DoStatus && s.Status != 0:
		return &FieldError{path + ".status", "belongs to a status step"}
	case s.Do != DoStatus && len(s.Headers) > 0:
		return &FieldError{path + ".headers", "belongs to a status step"}
	case s.Do != DoStatus && s.Do != DoErrorEvent && s.Error != "":
		return &FieldError{path + ".error", "belongs to a status or error_event step"}
	}
	return nil
}

func (p Plan) hasAccept() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.At == AtAccept })
}

// oneOf lets empty pass, which stands for the default.
func oneOf[T ~string](path string, value T, allowed ...T) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return &FieldError{path, fmt.Sprintf("%q is not one of %v", value, allowed)}
}

func within(path string, value, low, high int) error {
	if value >= low && value <= high {
		return nil
	}
	return &FieldError{path, fmt.Sprintf("%d is not between %d and %d", value, low, high)}
}
