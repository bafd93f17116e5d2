package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/turnd/turnd/bench/rig"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// late stops a server past its lease and lets it wake in the middle of its reply or after its end, with and without the
// turn having been sent again meanwhile; then it cuts off the answers to the commits of a claim and of a completion.
func late(l *lab) error {
	for _, scene := range []struct {
		name string
		play func(*lateScene) (string, error)
	}{
		{"woken_in_the_middle", (*lateScene).wokenInTheMiddle},
		{"woken_after_the_end", (*lateScene).wokenAfterTheEnd},
		{"sent_again_meanwhile", (*lateScene).sentAgainMeanwhile},
		{"claim_unanswered", (*lateScene).claimUnanswered},
		{"completion_unanswered", (*lateScene).completionUnanswered},
	} {
		s, err := l.lateScene(scene.name)
		if err != nil {
			return fmt.Errorf("%s: %w", scene.name, err)
		}
		outcome, err := scene.play(s)
		s.close()
		if err != nil {
			return fmt.Errorf("%s: %w", scene.name, err)
		}
		figure(scene.name, outcome)
	}
	return nil
}

// lateScene is a provider, a Postgres behind a proxy, a server that goes through the proxy, and another that does not.
type lateScene struct {
	*lab
	e     engine
	p     *provider
	proxy *rig.Link
	slow  *service
	other *service
	in    *turnsv1.TurnInput
}

// lateMark stands in the prompt and in the reply, where the proxy looks for it.
const lateMark = "needle in the stack"

func (l *lab) lateScene(name string) (*lateScene, error) {
	e, err := l.postgres("late_" + name)
	if err != nil {
		return nil, err
	}
	first := gated("late", "mid", 64, 21)
	first["times"] = 1
	marked := object{"name": "marked", "match": object{"text": "marked"}, "plan": object{"blocks": []object{{"text": strings.Repeat("say ", 20) + lateMark}}}}
	p, err := l.provider(object{"rules": []object{first, marked, plain(48)}})
	if err != nil {
		return nil, err
	}
	models, err := l.models(p.url)
	if err != nil {
		return nil, err
	}
	s := &lateScene{lab: l, e: e, p: p, in: textInput(uuid.NewString(), uuid.NewString(), "a late turn", "anthropic")}
	flags := []string{"--lease", "2s", "--sweep", "300ms"}
	if s.other, err = l.serve(e, models, flags...); err != nil {
		return nil, err
	}
	through := e
	if s.proxy, through.url, err = startProxy(e.dsn); err != nil {
		return nil, err
	}
	s.slow, err = l.serve(through, models, flags...)
	return s, err
}

func (s *lateScene) close() {
	s.slow.kill(syscall.SIGKILL)
	s.other.stop()
	s.p.stop()
	s.proxy.Close()
}

// stopPastLease submits the turn to the slow server, stops it once the provider waits in the middle, and waits until the
// other has swept its claim.
func (s *lateScene) stopPastLease() (reply string, err error) {
	got, err := s.slow.turns.SubmitTurn(s.ctx, &turnsv1.SubmitTurnRequest{Input: s.in})
	if err != nil {
		return "", err
	}
	if err := s.p.arrived("mid", 1); err != nil {
		return "", err
	}
	if err := s.slow.Signal(syscall.SIGSTOP); err != nil {
		return "", err
	}
	return got.GetReply().GetReplyId(), s.settles(s.e, inFlight, 0)
}

func (s *lateScene) wake() error { return s.slow.Signal(syscall.SIGCONT) }

const (
	completeReplies = `SELECT count(*) FROM turns WHERE status = 'complete'`
	settledReplies  = `SELECT count(*) FROM turns WHERE settled_at IS NOT NULL`
)

// follows demands that the other server tells the reply whole.
func (s *lateScene) follows(reply string) error {
	var h listener
	if err := h.send(s.ctx, s.other, s.in, nil); err != nil {
		return err
	}
	if !h.completed || h.reply != reply {
		return fmt.Errorf("a follower on the other server hears completed=%t of reply %s instead of %s", h.completed, h.reply, reply)
	}
	return nil
}

// stands demands what is stored and what the provider counted.
func (s *lateScene) stands(generations, live int) error {
	c, err := s.p.counts()
	if err != nil {
		return err
	}
	n, err := s.e.number(s.ctx, liveReplies)
	if err != nil {
		return err
	}
	open, err := s.e.number(s.ctx, openCalls)
	if err != nil {
		return err
	}
	if c.Generations != generations || n != live || open != 0 {
		return fmt.Errorf("generations=%d live=%d open_calls=%d", c.Generations, n, open)
	}
	return nil
}

func (s *lateScene) wokenInTheMiddle() (string, error) {
	reply, err := s.stopPastLease()
	if err != nil {
		return "", err
	}
	if err := s.wake(); err != nil {
		return "", err
	}
	if err := s.settles(s.e, inFlight, 1); err != nil {
		return "", fmt.Errorf("the reply was not revived: %w", err)
	}
	if err := s.p.open("mid"); err != nil {
		return "", err
	}
	if err := s.settles(s.e, completeReplies, 1); err != nil {
		return "", err
	}
	return "revived", errors.Join(s.follows(reply), s.stands(1, 1))
}

func (s *lateScene) wokenAfterTheEnd() (string, error) {
	reply, err := s.stopPastLease()
	if err != nil {
		return "", err
	}
	if err := s.p.open("mid"); err != nil {
		return "", err
	}
	if err := s.p.call(http.MethodGet, "/_scripted/wait?finished=1&timeout=30s"); err != nil {
		return "", err
	}
	if err := s.wake(); err != nil {
		return "", err
	}
	if err := s.settles(s.e, completeReplies, 1); err != nil {
		return "", fmt.Errorf("the whole reply was not kept: %w", err)
	}
	return "kept", errors.Join(s.follows(reply), s.stands(1, 1))
}

func (s *lateScene) sentAgainMeanwhile() (string, error) {
	reply, err := s.stopPastLease()
	if err != nil {
		return "", err
	}
	var h listener
	if err := h.send(s.ctx, s.other, s.in, &turnsv1.Cursor{ReplyId: reply, Offset: 1}); err != nil {
		return "", err
	}
	if !h.completed || h.reply == reply || h.previous != reply {
		return "", errors.New("the turn sent again was not answered by a new reply that says so")
	}
	if err := s.p.open("mid"); err != nil {
		return "", err
	}
	if err := s.wake(); err != nil {
		return "", err
	}
	if err := s.settles(s.e, settledReplies, 2); err != nil {
		return "", fmt.Errorf("the late owner did not settle: %w", err)
	}
	return "fenced", errors.Join(s.follows(h.reply), s.stands(2, 1))
}

func (s *lateScene) claimUnanswered() (string, error) {
	s.in = textInput(s.in.GetConversationId(), s.in.GetTurnId(), "marked: "+lateMark, "anthropic")
	return s.unanswered()
}

func (s *lateScene) completionUnanswered() (string, error) {
	s.in = textInput(s.in.GetConversationId(), s.in.GetTurnId(), "marked", "anthropic")
	return s.unanswered()
}

// unanswered sends a turn while the answer to one of its commits is lost, and demands one whole reply from one call.
func (s *lateScene) unanswered() (string, error) {
	s.proxy.LoseAnswerTo(lateMark)
	var h listener
	begun := time.Now()
	if err := h.send(s.ctx, s.slow, s.in, nil); err != nil {
		return "", err
	}
	if !h.completed {
		return "", errors.New("the reply did not complete")
	}
	if s.proxy.Losses() != 1 {
		return "", errors.New("no answer was lost")
	}
	return fmt.Sprintf("completed_in_%dms", time.Since(begun).Milliseconds()), errors.Join(s.follows(h.reply), s.stands(1, 1))
}
